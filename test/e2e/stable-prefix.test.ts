/** What the provider may cache: from call to call only the end of a request changes, unless a named cause says why. */
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { blocksOf, isTimeNote, type WireBody } from '../platforms/anthropic/wire.ts';
import { readStore, untilAtRest } from './conservation.ts';
import { ada, startTelegramGateway, untilSaid } from './telegram-gateway.ts';

const hourMs = 3_600_000;

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}

/** The blocks of all messages; where the provider's cache ends is no content. */
function contentsOf({ messages }: WireBody): readonly string[] {
  return messages.flatMap((message) =>
    blocksOf(message).map(({ cache_control: _, ...block }) => JSON.stringify([message.role, block])),
  );
}

describe('the prefix of a request', () => {
  test('stays the same, byte for byte, over turns, runs, a restart and an hour between', async ({
    expect,
    onTestFinished,
  }) => {
    const gateway = await startTelegramGateway({}, onTestFinished);
    const { telegram, model, dataDir } = gateway;
    model.script((body) => {
      const [last] = blocksOf(body.messages.at(-1) ?? { role: 'user', content: '' }).slice(-1);
      if (last?.type === 'tool_result') return { text: `Done ${model.requests.length}.` };
      return { text: 'I look.', toolCalls: [{ name: 'session_status', input: {} }] };
    });
    const ask = async (text: string, calls: number) => {
      telegram.userSends({ from: ada, text });
      await untilSaid(telegram, { chat: ada.id, text: `Done ${calls}.` });
    };
    await ask('How long is our conversation?', 2);
    await ask('And now?', 4);
    await gateway.parley().stop();
    await gateway.start({ CLOCK_AHEAD_MS: String(hourMs) });
    await ask('After an hour?', 6);

    const bodies = model.requests.map(({ body }) => body);
    expect(bodies).toHaveLength(6);
    expect(new Set(bodies.map(({ system }) => hashOf(system))).size).toBe(1);
    expect(new Set(bodies.map(({ tools }) => hashOf(tools))).size).toBe(1);
    for (const [index, body] of bodies.entries()) {
      const before = contentsOf(bodies[index - 1] ?? { ...body, messages: [] });
      expect(contentsOf(body).slice(0, before.length)).toEqual(before);
    }
    const times = bodies.at(-1)?.messages.flatMap((message) => blocksOf(message));
    const notes = times?.flatMap(({ text = '' }) => (isTimeNote(text) ? [text] : [])) ?? [];
    expect(notes).toHaveLength(3);
    expect(notes[0]).toMatch(
      /^.* It is \w+, \d{4}-\d\d-\d\d \d\d:\d\d \(Europe\/Berlin\)\. From Ada \(.*\)\.$/,
    );
    expect(notes[2]).not.toBe(notes[0]);

    // All that could be read was: what a request shares with the one before it, up to that one's end.
    await untilAtRest(dataDir, 3);
    const calls = readStore(
      dataDir,
      `select inputTokens + cacheReadTokens + cacheWriteTokens as prompt, cacheReadTokens as read
       from modelCalls order by id`,
    ).map(({ prompt, read }) => ({ prompt: Number(prompt), read: Number(read) }));
    const readable = calls.slice(0, -1).reduce((sum, { prompt }) => sum + prompt, 0);
    const read = calls.slice(1).reduce((sum, each) => sum + each.read, 0);
    expect(read / readable).toBeGreaterThan(0.95);

    // The one cause that is played here: somebody has changed what the agent is told.
    const workspace = join(dataDir, 'workspace');
    await mkdir(workspace, { recursive: true });
    await writeFile(join(workspace, 'AGENTS.md'), 'Be brief.');
    await ask('One more.', 8);
    expect(hashOf(model.requests[6]?.body.system)).not.toBe(hashOf(bodies[0]?.system));
    expect(hashOf(model.requests[6]?.body.tools)).toBe(hashOf(bodies[0]?.tools));
  });
});
