/** What the provider can cache: from call to call only the end of a request changes, except for a named cause. */

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { describe, test } from 'vitest';
import { mediaFolder } from '../../src/config/media-folder.ts';
import { newMediaName } from '../../src/inbound/media.ts';
import { blocksOf, isTimeNote, type WireBody } from '../platforms/anthropic/wire.ts';
import { isLong } from '../support/long-run.ts';
import { readStore, untilAtRest } from './conservation.ts';
import { startStage } from './stage.ts';
import { ada, untilSaid } from './telegram-chat.ts';
import { until } from './until.ts';

const hourMs = 3_600_000;
/** Runs before and after the restart and the hour, and model calls in each; the restart's own call counts too. */
const [runs, turns] = isLong ? [15, 30] : [1, 2];

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}

/** Returns the blocks of all messages, without the cache markers, which aren't content. */
function contentsOf({ messages }: WireBody): readonly string[] {
  return messages.flatMap((message) =>
    blocksOf(message).map(({ cache_control: _, ...block }) => JSON.stringify([message.role, block])),
  );
}

/** Gives the first message two files, `days` days old, while no process is running; returns their paths. */
async function giveFiles(dataDir: string, days: readonly number[]): Promise<readonly string[]> {
  const [row] = readStore(dataDir, 'select id, content from inbox order by seq limit 1');
  const names = days.map(() => newMediaName(String(row?.id)));
  const paths = names.map((name) => join(mediaFolder(dataDir), name));
  await mkdir(mediaFolder(dataDir), { recursive: true });
  for (const [index, path] of paths.entries()) {
    const at = Date.now() / 1000 - (days[index] ?? 0) * 86_400;
    await writeFile(path, 'bytes');
    await utimes(path, at, at);
  }
  const file = { kind: 'stored', mimeType: 'application/pdf', sizeBytes: 5, name: 'a.pdf' };
  const stored = names.map((path) => ({ ...file, path }));
  const db = new BetterSqlite3(join(dataDir, 'parley.db'));
  const content = JSON.stringify({ ...JSON.parse(String(row?.content)), stored });
  db.prepare('update inbox set content = ? where id = ?').run(content, row?.id);
  db.close();
  return paths;
}

describe('the prefix of a request', () => {
  test('keeps the prefix of requests byte for byte over turns, runs, a restart and an hour', async ({
    expect,
    onTestFinished,
  }) => {
    const gateway = await startStage({ config: { media: { keepDays: 40 } } }, onTestFinished);
    const { telegram, model, dataDir } = gateway;
    model.script((body) => {
      expect(body.messages.at(-1)?.role).toBe('user');
      const count = model.requests.length;
      if (count % turns === 0) return { text: `Done ${count}.` };
      // Different ones each time: the loop guard ends a run that repeats itself. Some exceed the provider's look-back.
      const limits = Array.from({ length: count % turns === 1 ? 25 : 1 }, (_, index) => (count + index) % 50);
      const toolCalls = limits.map((limit) => ({ name: 'sessions_list', input: { limit: limit + 1 } }));
      return { text: 'I look.', toolCalls };
    });
    const ask = async (text: string) => {
      const calls = (Math.floor(model.requests.length / turns) + 1) * turns;
      telegram.userSends({ from: ada, text });
      await untilSaid(telegram, { chat: ada.id, text: `Done ${calls}.` });
    };
    for (let run = 0; run < runs + 1; run += 1) await ask(`How long is our conversation ${run}?`);
    await gateway.parley().stop();
    const [old = '', young = ''] = await giveFiles(dataDir, [41, 39]);
    await gateway.start({ env: { CLOCK_AHEAD_MS: String(hourMs), HASTY_START: '1' } });
    for (let run = 0; run < runs; run += 1) await ask(`After an hour ${run}?`);

    const bodies = model.requests.map(({ body }) => body);
    expect(bodies).toHaveLength((2 * runs + 1) * turns);
    expect(new Set(bodies.map(({ system }) => hashOf(system))).size).toBe(1);
    expect(new Set(bodies.map(({ tools }) => hashOf(tools))).size).toBe(1);
    for (const [index, body] of bodies.entries()) {
      const before = contentsOf(bodies[index - 1] ?? { ...body, messages: [] });
      expect(contentsOf(body).slice(0, before.length)).toEqual(before);
    }
    const times = bodies.at(-1)?.messages.flatMap((message) => blocksOf(message));
    const notes = times?.flatMap(({ text = '' }) => (isTimeNote(text) ? [text] : [])) ?? [];
    expect(notes).toHaveLength(2 * runs + 1);
    expect(notes[0]).toMatch(
      /^.* It is \w+, \d{4}-\d\d-\d\d \d\d:\d\d \(Europe\/Berlin\)\. From Ada \(.*\)\.$/,
    );
    expect(notes.at(-1)).not.toBe(notes[0]);

    // Everything cacheable was read from the cache: what a request shares with the one before it, up to that one's end.
    await untilAtRest(dataDir, 2 * runs + 1);
    const calls = readStore(
      dataDir,
      `select inputTokens + cacheReadTokens + cacheWriteTokens as prompt, cacheReadTokens as read
       from modelCalls order by id`,
    ).map(({ prompt, read }) => ({ prompt: Number(prompt), read: Number(read) }));
    const readable = calls.slice(0, -1).reduce((sum, { prompt }) => sum + prompt, 0);
    const read = calls.slice(1).reduce((sum, each) => sum + each.read, 0);
    if (runs > 1)
      console.log(`${calls.length} calls read ${((100 * read) / readable).toFixed(2)} % of what they could`);
    expect(read / readable).toBeGreaterThan(0.95);

    // Meanwhile the message's file that is older than the retention time was removed.
    await until(() => !existsSync(old), { what: 'the removal of an old file' });
    expect(existsSync(young)).toBe(true);
    const [message] = readStore(dataDir, 'select content from inbox order by seq limit 1');
    expect(JSON.parse(String(message?.content)).stored).toMatchObject([
      { kind: 'missing' },
      { kind: 'stored' },
    ]);

    // The one cause tested here: somebody changed the agent's instructions.
    const workspace = join(dataDir, 'workspace');
    await mkdir(workspace, { recursive: true });
    await writeFile(join(workspace, 'AGENTS.md'), 'Be brief.');
    await ask('One more.');
    expect(hashOf(model.requests[bodies.length]?.body.system)).not.toBe(hashOf(bodies[0]?.system));
    expect(hashOf(model.requests[bodies.length]?.body.tools)).toBe(hashOf(bodies[0]?.tools));
  });
});
