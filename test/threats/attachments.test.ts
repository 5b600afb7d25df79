/**
 * Threat 10: whatever file somebody sends, it costs a bounded amount of memory, is written only under a
 * generated name, and keeps nobody else waiting.
 */

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { asRun } from '../e2e/as-run.ts';
import { findBreaches, readStore, untilAtRest } from '../e2e/conservation.ts';
import { startStage } from '../e2e/stage.ts';
import { bob, untilSaid } from '../e2e/telegram-chat.ts';
import { blocksOf } from '../platforms/anthropic/wire.ts';
import { isLong } from '../support/long-run.ts';
import { hostileFiles, shownImages } from './hostile-files.ts';

const maxMb = isLong ? 20 : 1;
const maxGrowthMb = 100;
const mark = `escaped-${crypto.randomUUID()}`;

it('protects memory, other chats and the disk, whatever files are sent', {
  timeout: 300_000,
}, async () => {
  const config = { access: { dmPolicy: 'open' }, media: { maxMb } };
  const { telegram, model, dataDir, parley } = await startStage({ config, env: asRun }, onTestFinished);
  const home = dirname(dataDir);
  model.script(() => ({ text: 'seen' }));
  telegram.userSends({ from: bob, text: 'before' });
  await untilSaid(telegram, { chat: bob.id, text: 'seen' });
  const before = filesBeside(home);
  const [{ pid }, hold] = [parley(), Promise.withResolvers<void>()];
  const atRestMb = residentMb(pid, 'VmRSS');
  // Resets VmHWM, which is from now on the peak since this moment.
  writeFileSync(`/proc/${pid}/clear_refs`, '5');

  const files = hostileFiles({ mark, home, hold: hold.promise });
  expect(files).toHaveLength(75);
  for (const [n, file] of files.entries()) {
    const document = telegram.world.addFile({ ...file, mimeType: 'image/png' });
    telegram.userSends({ from: { id: 1001 + n, is_bot: false, first_name: `P${n}` }, document });
  }
  // Some of them never end, and have stalled in the middle.
  const waitedMs: number[] = [];
  for (const answers of [2, 3]) {
    const askedAt = performance.now();
    telegram.userSends({ from: bob, text: 'meanwhile' });
    await telegram.waitFor(() => telegram.botMessages(bob.id).length === answers);
    waitedMs.push(Math.round(performance.now() - askedAt));
    // Before the second answer they continue.
    hold.resolve();
  }
  await untilAtRest(dataDir, 78);

  const grownMb = Math.round(residentMb(pid, 'VmHWM') - atRestMb);
  console.info(
    `another chat was answered within ${waitedMs.join(' and ')} ms; at most ${grownMb} MB more memory`,
  );
  expect(grownMb).toBeLessThan(maxGrowthMb);
  expect(findBreaches(dataDir)).toEqual([]);
  expect(filesBeside(home)).toEqual(before);
  expect([dirname(home), process.cwd()].filter((folder) => existsSync(join(folder, mark)))).toEqual([]);
  for (const name of readdirSync(join(dataDir, 'media'))) expect(name).toMatch(/^[\w-]+\.[\da-f]{8}$/);
  const types = readStore(dataDir, `select content from inbox where "account" <> ''`).flatMap(({ content }) =>
    storedIn(String(content)),
  );
  expect(types.filter(({ name }) => /svg|html/.test(name)).map(({ mimeType }) => mimeType)).toEqual(
    Array.from({ length: 6 }, () => 'text/plain'),
  );
  const blocks = model.requests.flatMap(({ body }) => body.messages.flatMap(blocksOf));
  expect(blocks.filter(({ type }) => type === 'image')).toHaveLength(shownImages);
  for (const { text = '' } of blocks.filter(({ text }) => text?.startsWith('[attach'))) {
    expect(text).toMatch(/^\[attach[^\n[\]]*\]$/);
    expect(text).not.toMatch(/[^\P{Cc}\n]|[\u202a-\u202e\u2066-\u2069\u200b]|<\|im_|<<<|\[Owner/u);
  }
  expect(parley().pid).toBe(pid);
});

function residentMb(pid: number, which: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${which}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024;
}

/** Returns every file of the installation except those that came with messages. */
function filesBeside(home: string): readonly string[] {
  const names = readdirSync(home, { recursive: true }).map(String);
  return names.filter((name) => !name.startsWith('data/media')).sort();
}

type Stored = { readonly kind: string; readonly name: string; readonly mimeType?: string };

function storedIn(content: string): readonly Stored[] {
  return (JSON.parse(content) as { readonly stored?: readonly Stored[] }).stored ?? [];
}
