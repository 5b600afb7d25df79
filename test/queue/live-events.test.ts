import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import { createLiveEvents, type LiveEvent } from '../../src/queue/live-events.ts';
import { openRedis, redisKeys } from '../../src/redis/connection.ts';
import { type PrivateServer, startPrivateServer } from '../../src/redis/private-server.ts';
import { patienceMs } from '../support/patience.ts';
import { silentLog } from '../support/silent-log.ts';

let folder = '';
let server: PrivateServer;
const keys = redisKeys('test');
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-live-'));
  server = await startPrivateServer({ dataDir: folder, log: silentLog, clock: systemClock });
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

const patient = { timeout: patienceMs, interval: 10 };

async function aProcess(holder: string) {
  const redis = openRedis({ kind: 'socket', path: server.socketPath }, silentLog);
  await redis.ready(AbortSignal.timeout(patienceMs));
  const live = createLiveEvents({ redis, keys, holder, log: silentLog });
  const heard: LiveEvent[] = [];
  live.listen((event) => void heard.push(event));
  onTestFinished(async () => {
    await live.close();
    redis.close();
  });
  return { redis, live, heard };
}

/** Resolves once the listener receives events, because subscribing takes a moment. */
async function untilHearing(from: Awaited<ReturnType<typeof aProcess>>, to: typeof from): Promise<void> {
  await vi.waitFor(() => {
    from.live.publish({ kind: 'freed' });
    expect(to.heard.length).toBeGreaterThan(0);
  }, patient);
  const mark = { kind: 'cancel', runId: 'mark' } as const;
  from.live.publish(mark);
  await vi.waitFor(() => expect(to.heard.at(-1)).toEqual(mark), patient);
  to.heard.length = 0;
}

const draft = {
  kind: 'draft',
  route: { channel: 'net', account: 'bot', conversation: 'c' },
  draftId: 7,
  text: { text: 'so far', spans: [{ kind: 'bold', start: 0, length: 2 }] },
} as unknown as LiveEvent;
const told: readonly LiveEvent[] = [
  { kind: 'cancel', runId: 'run-1' },
  { kind: 'deliver', conversationKey: 'net/bot/c' },
  { kind: 'timeline', laneKey: 'lane', event: { kind: 'changed' } },
  { kind: 'timeline', laneKey: 'lane', event: { kind: 'run', runId: 'run-1', state: 'ended' } },
  draft,
];

it('delivers events to the other processes in order, and not to their publisher', async () => {
  const [one, other] = await Promise.all([aProcess('one'), aProcess('other')]);
  await untilHearing(one, other);
  for (const event of told) one.live.publish(event);
  await vi.waitFor(() => expect(other.heard).toEqual(told), patient);
  expect(one.heard).toEqual([]);
});

it('sends an event once per turn of the event loop, however often it is published', async () => {
  const [one, other] = await Promise.all([aProcess('one'), aProcess('other')]);
  await untilHearing(one, other);
  const changed = { kind: 'timeline', laneKey: 'lane', event: { kind: 'changed' } } as const;
  for (let time = 0; time < 5; time++) one.live.publish(changed);
  one.live.publish({ kind: 'cancel', runId: 'last' });
  await vi.waitFor(() => expect(other.heard.at(-1)).toEqual({ kind: 'cancel', runId: 'last' }), patient);
  expect(other.heard).toEqual([changed, { kind: 'cancel', runId: 'last' }]);
});

it('drops forged events', async () => {
  const [one, other] = await Promise.all([aProcess('one'), aProcess('other')]);
  await untilHearing(one, other);
  const forged = [
    'not JSON',
    '{"from":"x"}',
    '{"from":"x","events":[{"kind":"eval","code":"1"}]}',
    '{"from":"x","events":[{"kind":"cancel"}]}',
    '{"from":"x","events":[{"kind":"draft","route":{},"draftId":1,"text":{"text":"","spans":[]}}]}',
  ];
  for (const message of forged) await one.redis.producer.publish(keys.eventsTopic, message);
  one.live.publish({ kind: 'freed' });
  await vi.waitFor(() => expect(other.heard).toEqual([{ kind: 'freed' }]), patient);
});

it('delivers events again once Redis is back', async () => {
  const [one, other] = await Promise.all([aProcess('one'), aProcess('other')]);
  await untilHearing(one, other);
  process.kill(server.pid() ?? 0, 'SIGKILL');
  await vi.waitFor(() => expect(one.redis.isReady()).toBe(false), patient);
  // Lost silently, which is acceptable because the store contains the same.
  one.live.publish({ kind: 'cancel', runId: 'lost' });
  await untilHearing(one, other);
});
