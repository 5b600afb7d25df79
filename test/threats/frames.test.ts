/**
 * Threat 18 on the wire: whatever a client sends over the page's socket or the terminal's, the gateway keeps
 * running. The readers themselves are fuzzed in test/channel-kit/client-conversation.test.ts and, for the networks, in
 * test/channels: telegram/poll, discord/inbound, discord/gateway-frame and signal/inbound, with a million frames each.
 */

import { existsSync, readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { findBreaches, readStore } from '../e2e/conservation.ts';
import { pageToken } from '../e2e/page-state.ts';
import { openStage, type Stage } from '../e2e/stage.ts';
import { until } from '../e2e/until.ts';
import { isLong } from '../support/long-run.ts';

const fewest = 500;
const frames = isLong ? 100_000 : 10_000;
const budgetMs = isLong ? 300_000 : 2_500;

const awkward = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.constantFrom(
    '\u0000',
    '\ud800',
    '\u202e',
    '\u001b[2J',
    '__proto__',
    'x'.repeat(70_000),
    -1,
    1e308,
    null,
    '',
  ),
);

const wellFormed = fc
  .record(
    {
      type: fc.constantFrom('hello', 'send', 'stop', 'edit', 'delete', 'constructor'),
      id: fc.oneof(fc.uuid(), awkward),
      conversation: fc.oneof(fc.constantFrom('main', 'other'), awkward),
      text: awkward,
      messageId: awkward,
      after: awkward,
      thread: awkward,
    },
    { requiredKeys: ['type'] },
  )
  .map((frame) => JSON.stringify(frame));

const malformed = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.json(),
  fc.constantFrom(
    '{"__proto__":{"polluted":true},"type":"hello"}',
    '{"type":"send","id":"x","text":"y","__proto__":{"isOwner":true}}',
    '{"constructor":{"prototype":{"polluted":true}},"type":"hello"}',
    `${'{"type":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
    '['.repeat(60_000),
    '{"type":"send"',
    '"',
    'null',
  ),
);

const frame = fc.oneof({ weight: 3, arbitrary: wellFormed }, { weight: 1, arbitrary: malformed });

it('survives any frames from page and terminal and stores nothing that it did not accept', {
  timeout: 600_000,
}, async () => {
  const stage = await openStage(
    { config: { rateLimit: { perSenderPerMinute: 100_000 } }, networks: ['web', 'terminal'] },
    onTestFinished,
  );
  const { pid, ended, url } = await stage.start();
  let hasEnded = false;
  void ended.then(() => {
    hasEnded = true;
  });

  await pour(() => webClient(url));
  await pour(() => terminalClient(stage));

  for (const channel of ['web', 'terminal'] as const) {
    const person = stage.person(channel);
    const text = `still there, ${channel}?`;
    person.says(text);
    await until(() => person.standing().some((line) => line.includes(text)), {
      what: `an answer on ${channel}`,
    });
  }
  expect(hasEnded).toBe(false);
  expect(pid).toBeGreaterThan(0);
  await untilQuiet(stage.dataDir);
  expect(findBreaches(stage.dataDir)).toEqual([]);
  const log = readFileSync(join(stage.dataDir, 'test.log'), 'utf8');
  expect(log).not.toMatch(/unhandled|uncaught|TypeError|RangeError|polluted/i);
});

type Client = { send(frame: string): Promise<void>; close(): void; isOpen(): boolean };

/** Sends frames until the count or the time is reached, at least a few; a client that is cut off reconnects. */
async function pour(connect: () => Promise<Client>): Promise<void> {
  const until = performance.now() + budgetMs;
  let client = await connect();
  let sent = 0;
  for (let seed = 1; sent < fewest || (sent < frames && performance.now() < until); seed++) {
    for (const one of fc.sample(frame, { numRuns: 50, seed })) {
      if (!client.isOpen()) client = await connect();
      await client.send(one);
      sent += 1;
    }
  }
  client.close();
}

function webClient(url: string): Promise<Client> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/channels/web/chat`, {
    headers: { authorization: `Bearer ${pageToken}` },
  });
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('open', () => {
      socket.on('error', () => undefined);
      resolve({
        send: (text) => new Promise((done) => socket.send(text, () => done())),
        close: () => socket.terminate(),
        isOpen: () => socket.readyState === WebSocket.OPEN,
      });
    });
  });
}

function terminalClient({ dataDir }: Stage): Promise<Client> {
  const wanted = join(dataDir, 'channels', 'terminal', 'terminal.sock');
  const pointer = `${wanted}.path`;
  const socket = createConnection(existsSync(pointer) ? readFileSync(pointer, 'utf8') : wanted);
  socket.resume();
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.on('error', () => undefined);
      resolve({
        send: (text) => new Promise((done) => socket.write(`${text}\n`, () => done())),
        close: () => socket.destroy(),
        isOpen: () => socket.writable,
      });
    });
  });
}

/** Waits until everything accepted has ended. */
async function untilQuiet(dataDir: string): Promise<void> {
  const open = () =>
    readStore(dataDir, `select id from inbox where state <> 'ended'`).length +
    readStore(dataDir, `select key from outbox where state in ('pending', 'sending')`).length;
  await until(() => open() === 0, { what: 'the gateway at rest' });
}
