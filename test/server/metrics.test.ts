import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { ParleyError } from '../../src/contracts/errors.ts';
import type { HookState } from '../../src/contracts/hook.ts';
import { createHooks } from '../../src/hooks/hooks.ts';
import { createMetrics, type Metrics } from '../../src/server/metrics/metrics.ts';
import { expireQuestion } from '../../src/store/access/decide-approval.ts';
import { enqueueItems } from '../../src/store/intake/enqueue-items.ts';
import { callsTools, says } from '../agent/support/scripted-model.ts';
import { call, openAsking } from '../runs/asking-run.ts';
import { aConversation } from '../store/a-conversation.ts';
import { anItem, aRoute, unique } from '../store/builders.ts';
import { aChildRow } from '../store/child-rows.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { aFamilyWorker } from '../store/family.ts';
import { freeLoop } from '../support/free-loop.ts';
import { silentLog } from '../support/silent-log.ts';

type Figures = ReadonlyMap<string, number>;

/** `name{label="value"}` → value. */
async function read({ metrics }: Metrics): Promise<Figures> {
  const lines = (await metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.replace(/ [^ ]+$/, ''), Number(/[^ ]+$/.exec(line)?.[0])]));
}

const states = ['held', 'waiting', 'taken', 'lost'];
const unaccounted = (figures: Figures, source = 'platform') =>
  Object.fromEntries(
    states.map((state) => [
      state,
      figures.get(`parley_messages_unaccounted{state="${state}",source="${source}"}`),
    ]),
  );
const sumOf = (figures: Figures, name: string) =>
  [...figures].filter(([key]) => key.startsWith(`${name}{`)).reduce((sum, [, value]) => sum + value, 0);

describeEachDatabase('the metrics', (open, { sql }) => {
  const aMetrics = () =>
    createMetrics({ store: open(), clock: systemClock, ...freeLoop, isRedisReady: () => true });

  const say = async (count = 1) => {
    const { conversation, conversationKey, worker, saying, claimRun, deliver } = aConversation(open());
    for (let number = 0; number < count; number++) await worker.accept(saying(`say ${number}`));
    return { worker, conversation, conversationKey, claim: claimRun, deliver };
  };

  it('counts all messages by outcome and none as unaccounted at rest', async () => {
    const { worker, claim, deliver } = await say();
    await worker.answer(await claim(), 'hello');
    await deliver();
    const figures = await read(aMetrics());
    expect(unaccounted(figures)).toEqual({ held: 0, waiting: 0, taken: 0, lost: 0 });
    expect(figures.get('parley_messages_accepted{source="platform"}')).toBe(1);
    expect(figures.get('parley_messages_ended{outcome="answered",source="platform"}')).toBe(1);
    expect(figures.get('parley_runs_ended{reason="natural"}')).toBe(1);
    expect(figures.get('parley_outbox_parts{state="sent"}')).toBe(1);
    expect(figures.get('parley_outbox_parts{state="unknown"}')).toBe(0);
    expect(figures.get('parley_lanes{state="active"}')).toBe(0);
    expect(figures.get('parley_queue_oldest_seconds')).toBe(0);
    expect([figures.get('parley_store_up'), figures.get('parley_redis_up')]).toEqual([1, 1]);
    expect(figures.get('process_resident_memory_bytes')).toBeGreaterThan(1e6);
    expect(figures.has('nodejs_eventloop_lag_seconds')).toBe(true);
  });

  it('counts open questions for which no run waits, and those past their time', async () => {
    const kind = 'parley_obligations_unaccounted{kind="approval"}';
    const run = openAsking(open());
    await run.say('go');
    await run.play(callsTools(call('1')), says('never reached'));
    expect((await read(aMetrics())).get(kind)).toBe(0);
    const [{ id = '', runId = '' } = {}] = await run.questions();
    await sql(`update "runs" set "state" = 'active' where "id" = '${runId}'`);
    expect((await read(aMetrics())).get(kind)).toBe(1);
    await sql(`update "runs" set "state" = 'parked' where "id" = '${runId}'`);
    await sql(`update "callApprovals" set "expiresAt" = 1 where "id" = '${id}'`);
    expect((await read(aMetrics())).get(kind)).toBe(1);
    await open().write(expireQuestion, { id });
    await run.play(says('too late'));
    await run.rest.deliver();
    await run.rest.deliver();
    expect((await read(aMetrics())).get(kind)).toBe(0);
  });

  it('counts files without an end whose message a run has taken', async () => {
    const kind = 'parley_obligations_unaccounted{kind="attachment"}';
    const { claim } = await say(1);
    await claim();
    const count = async () => (await read(aMetrics())).get(kind) ?? 0;
    expect(await count()).toBe(0);
    await sql(`update "inbox" set "isFetching" = 1 where "state" = 'taken'`);
    expect(await count()).toBeGreaterThan(0);
    await sql(`update "inbox" set "isFetching" = 0 where "state" = 'taken'`);
    const stored = '[{"kind":"stored","reading":{"kind":"pending"}}]';
    await sql(`update "inbox" set "content" = '{"stored":${stored}}' where "state" = 'taken'`);
    expect(await count()).toBeGreaterThan(0);
    await sql(`update "inbox" set "state" = 'ended', "outcome" = 'answered' where "state" = 'taken'`);
    await sql('update "lanes" set "runId" = null');
  });

  it('counts calls that wait to retry the model', async () => {
    const now = systemClock.now();
    const clock = { ...systemClock, now: () => now };
    const deps = { store: open(), clock, ...freeLoop, isRedisReady: () => true };
    const modelWaits = () => ({ count: 3, since: now - 20_000 });
    const figures = await read(createMetrics({ ...deps, modelWaits }));
    expect(figures.get('parley_model_waiting_calls')).toBe(3);
    expect(figures.get('parley_model_waiting_seconds')).toBe(20);
    expect((await read(createMetrics(deps))).get('parley_model_waiting_calls')).toBe(0);
  });

  it('counts waiting and running messages and how long the oldest has waited', async () => {
    const { claim, conversation } = await say(3);
    await claim();
    await sql(`update "inbox" set "createdAt" = "createdAt" - 60000
      where "conversationKey" = 'test/bot/${conversation}'`);
    const figures = await read(aMetrics());
    expect(unaccounted(figures)).toMatchObject({ waiting: 2, taken: 1, lost: 0 });
    expect(figures.get('parley_queue_items{state="waiting"}')).toBe(2);
    expect(figures.get('parley_lanes{state="active"}')).toBe(1);
    expect(figures.get('parley_queue_oldest_seconds')).toBeGreaterThanOrEqual(60);
  });

  it('tells armed, due, parked and unheld lanes apart', async () => {
    const before = await read(aMetrics());
    const armed = await say();
    await sql(`update "inbox" set "dueAt" = "dueAt" + 600000
      where "conversationKey" = '${armed.conversationKey}'`);
    await say();
    const [parked, unheld] = [await (await say()).claim(), await (await say()).claim()];
    await sql(
      `update "runs" set "state" = 'parked', "parkedAt" = 1, "parkReason" = 'approval' where "id" = '${parked.runId}'`,
    );
    await sql(`update "lanes" set "leaseUntil" = 0 where "runId" in ('${parked.runId}', '${unheld.runId}')`);
    const after = await read(aMetrics());
    for (const state of ['armed', 'due', 'parked', 'unheld']) {
      const name = `parley_lanes{state="${state}"}`;
      expect((after.get(name) ?? 0) - (before.get(name) ?? 0), state).toBe(1);
    }
  });

  it('counts sub-agents by state, depth, class and end', async () => {
    const { claim } = await say();
    const parent = await claim();
    const child = aChildRow(parent);
    const kinds = [{ state: 'queued' }, { state: 'done', status: 'failed' }] as const;
    const rows = [child, aChildRow(child), ...kinds.map((kind) => aChildRow(parent, kind))];
    const before = await read(aMetrics());
    for (const { insert } of rows) await sql(insert);
    const after = await read(aMetrics());
    const grown = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    expect(grown('parley_children{state="running",depth="1",class="sub-1"}')).toBe(1);
    expect(grown('parley_children{state="queued",depth="1",class="sub-1"}')).toBe(1);
    expect(grown('parley_children{state="running",depth="2",class="sub-2"}')).toBe(1);
    expect(grown('parley_children_ended{status="failed",depth="1"}')).toBe(1);
    await sql(`delete from "children" where "treeId" = '${child.treeId}'`);
  });

  it('counts a live sub-agent as an orphan once its top-level run and lane are gone', async () => {
    const orphans = async () => (await read(aMetrics())).get('parley_children_orphaned');
    const { claim, worker } = await say();
    const parent = await claim();
    const child = aChildRow(parent);
    await sql(child.insert);
    expect(await orphans()).toBe(0);
    await worker.answer(parent, 'hello');
    // It will report to the lane, which still exists.
    expect(await orphans()).toBe(0);
    await sql(`update "lanes" set "sessionId" = 'another' where "key" = '${parent.laneKey}'`);
    expect(await orphans()).toBe(1);
    // It is being stopped, and has some seconds to end.
    await sql(`update "children" set "stopAt" = ${Date.now() + 10_000} where "id" = '${child.id}'`);
    expect(await orphans()).toBe(0);
    await sql(`update "children" set "stopAt" = ${Date.now() - 10_000} where "id" = '${child.id}'`);
    expect(await orphans()).toBe(1);
    await sql(`update "children" set "state" = 'done', "endedAt" = 1 where "id" = '${child.id}'`);
    expect(await orphans()).toBe(0);
  });

  it('counts a message that nothing will process as lost, and every message once', async () => {
    const [gone, unended, forgotten] = [await say(), await say(), await say()];
    const run = await forgotten.claim();
    expect(unaccounted(await read(aMetrics()))).toMatchObject({ lost: 0 });
    await sql(`delete from "inbox" where "conversationKey" = '${gone.conversationKey}'`);
    await sql(`update "inbox" set "state" = 'ended' where "conversationKey" = '${unended.conversationKey}'`);
    await sql(`update "runs" set "state" = 'finished' where "id" = '${run.runId}'`);
    const figures = await read(aMetrics());
    expect(unaccounted(figures)).toMatchObject({ lost: 3 });
    expect(sumOf(figures, 'parley_messages_accepted')).toBe(
      sumOf(figures, 'parley_messages_ended') + sumOf(figures, 'parley_messages_unaccounted'),
    );
  });

  it('counts messages of programs and sub-agents that nothing will process as lost', async () => {
    const family = aFamilyWorker(open());
    const { lane, run } = await family.begin();
    const item = anItem('look at this');
    await open().write(enqueueItems, { items: [{ lane, item }] });
    const [working, ended] = [await family.spawnOne(run), await family.spawnOne(run)];
    await family.answer(await family.claimRun(ended.laneKey));
    const before = await read(aMetrics());
    expect(unaccounted(before, 'api')).toEqual({ held: 0, waiting: 1, taken: 0, lost: 0 });
    expect(unaccounted(before, 'child')).toMatchObject({ lost: 0 });

    await sql(`update "inbox" set "state" = 'ended' where "id" = '${item.id}'`);
    await sql(`delete from "inbox" where "sourceKey" in ('spawn:${working.id}', 'child:${ended.id}')`);
    const after = await read(aMetrics());
    expect(unaccounted(after, 'api')).toMatchObject({ waiting: 0, lost: 1 });
    expect(unaccounted(after, 'child')).toMatchObject({ lost: 2 });
    expect(sumOf(after, 'parley_messages_accepted')).toBe(
      sumOf(after, 'parley_messages_ended') + sumOf(after, 'parley_messages_unaccounted'),
    );
  });

  it('counts a long history in slices and later only what changed', async () => {
    // With a fixed clock no count takes long, and none is served from the cache.
    const now = Date.now();
    const clock = { ...systemClock, now: () => now };
    const metrics = createMetrics({ store: open(), clock, ...freeLoop, isRedisReady: () => true });
    const before = (await read(metrics)).get('parley_messages_accepted{source="platform"}') ?? 0;
    const numbers = `with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000)`;
    const prefix = unique('many');
    await sql(`insert into "inbox" ("id", "laneKey", "seq", "kind", "state", "outcome", "account",
        "conversationKey", "senderId", "authority", "route", "content", "rank", "isFetching", "dueAt", "createdAt")
      ${numbers} select '${prefix}-' || i, '${prefix}', i, 'message', 'ended', 'silent', 'test/bot',
        '${prefix}', 'ann', 'owner', '{}', '{}', 0, 0, 1, 1 from n`);
    await sql(`insert into "ledger" ("account", "eventKey", "kind", "outcome", "inboxId", "conversationKey", "at")
      ${numbers} select 'test/bot', '${prefix}-' || i, 'message', 'accepted', '${prefix}-' || i, '${prefix}', 1 from n`);
    const counted = async () => {
      const figures = await read(metrics);
      const silent = figures.get('parley_messages_ended{outcome="silent",source="platform"}');
      return { accepted: figures.get('parley_messages_accepted{source="platform"}'), silent };
    };
    expect(await counted()).toEqual({ accepted: before + 5000, silent: 5000 });
    await say();
    expect(await counted()).toEqual({ accepted: before + 5001, silent: 5000 });
    // Simulates an operator who changes something that ended long ago.
    await sql(`update "inbox" set "outcome" = 'failed' where "id" = '${prefix}-7'`);
    for (let slices = 0; slices < 8; slices++) await counted();
    expect(await counted()).toEqual({ accepted: before + 5001, silent: 4999 });
  });
});

it('reports an unavailable database instead of earlier figures', async () => {
  const metrics = metricsWhile(new ParleyError('store_unavailable', 'away'), false);
  const figures = await read(metrics);
  expect([figures.get('parley_store_up'), figures.get('parley_redis_up')]).toEqual([0, 0]);
  expect(
    [...figures.keys()].filter((name) => /^parley_(messages|queue|lanes|outbox|runs)/.test(name)),
  ).toEqual([]);
});

it('does not report its own fault as an outage', async () => {
  const metrics = metricsWhile(new Error('no such column'), true);
  await expect(metrics.metrics()).rejects.toThrow('no such column');
});

it('counts overflows and missed events from the first request on', async () => {
  const metrics = metricsWhile(new ParleyError('store_unavailable', 'away'), true);
  metrics.overflowed('summarize');
  metrics.missed('telegram');
  await metrics.metrics();
  metrics.overflowed('new');
  metrics.missed('signal');
  const figures = await read(metrics);
  expect(figures.get('parley_queue_overflows_total{drop="new"}')).toBe(1);
  expect(figures.has('parley_queue_overflows_total{drop="summarize"}')).toBe(false);
  expect(figures.get('parley_events_missed_total{channel="signal"}')).toBe(1);
  expect(figures.has('parley_events_missed_total{channel="telegram"}')).toBe(false);
});

it('counts events by outcome and reason from the first request on', async () => {
  const metrics = metricsWhile(new ParleyError('store_unavailable', 'away'), true);
  const ignored = { kind: 'ignored', reason: 'not-mentioned' } as const;
  metrics.received('signal', [ignored]);
  await metrics.metrics();
  const again = { kind: 'duplicate', of: { outcome: 'ignored', reason: 'not-mentioned' } } as const;
  metrics.received('signal', [ignored, { kind: 'refused', reason: 'rate-limited' }, again, ignored]);
  const counted = [...(await read(metrics))].filter(([name]) => name.startsWith('parley_events_total'));
  expect(Object.fromEntries(counted)).toEqual({
    'parley_events_total{channel="signal",outcome="ignored",reason="not-mentioned"}': 2,
    'parley_events_total{channel="signal",outcome="refused",reason="rate-limited"}': 1,
    'parley_events_total{channel="signal",outcome="duplicate",reason=""}': 1,
  });
});

it('counts deliveries and their latency from the first request on', async () => {
  const metrics = metricsWhile(new ParleyError('store_unavailable', 'away'), true);
  metrics.delivered({ channel: 'test', result: 'sent', ageMs: 70 });
  await metrics.metrics();
  metrics.delivered({ channel: 'test', result: 'sent', ageMs: 70 });
  metrics.delivered({ channel: 'test', result: 'retry', ageMs: 900 });
  const figures = await read(metrics);
  expect(figures.get('parley_delivery_attempts_total{channel="test",result="sent"}')).toBe(1);
  expect(figures.get('parley_delivery_attempts_total{channel="test",result="retry"}')).toBe(1);
  expect(figures.get('parley_delivery_seconds_bucket{le="0.05",channel="test"}')).toBe(0);
  expect(figures.get('parley_delivery_seconds_bucket{le="0.1",channel="test"}')).toBe(1);
  expect(figures.get('parley_delivery_seconds_count{channel="test"}')).toBe(1);
});

it('counts the failures of each hook by its plugin or script, those before the first request, too', async () => {
  const hooks = createHooks({ log: silentLog, clock: systemClock });
  const fail = () => Promise.reject(new Error('no'));
  hooks.on('message_sent', fail, { owner: 'audit.sh' });
  hooks.on('message_sent', fail, { owner: 'weather' });
  hooks.on('message_sent', fail, { owner: 'weather' });
  hooks.on('gateway_stop', () => undefined, { owner: 'weather' });
  const metrics = metricsWhile(new ParleyError('store_unavailable', 'away'), true, hooks.states);
  const sent = { route: aRoute('here'), part: 'p1', result: 'sent' };
  await hooks.observe('message_sent', sent);
  await read(metrics);
  await hooks.observe('message_sent', sent);
  const counted = [...(await read(metrics))].filter(([name]) => name.startsWith('parley_hook'));
  expect(Object.fromEntries(counted)).toEqual({
    'parley_hook_failures_total{hook="message_sent",source="audit.sh"}': 2,
    'parley_hook_failures_total{hook="message_sent",source="weather"}': 4,
    'parley_hook_failures_total{hook="gateway_stop",source="weather"}': 0,
  });
});

it('loads no metrics library before somebody asks for metrics', () => {
  const script = `
    const { createRequire } = await import('node:module');
    await import('./src/server/gateway-health.ts');
    const { createMetrics } = await import('./src/server/metrics/metrics.ts');
    const loaded = () => Object.keys(createRequire(import.meta.url).cache).some((file) => file.includes('prom-client'));
    const metrics = createMetrics({ store: { read: async () => { throw new (await import('./src/contracts/errors.ts')).ParleyError('store_unavailable', 'away') } }, clock: { now: Date.now }, loop: { delays: () => ({ p50: 0, p99: 0, max: 0 }), held: () => 0 }, formatter: { counts: () => ({ parsed: 0, givenUp: 0 }) }, isRedisReady: () => true });
    metrics.delivered({ channel: 'test', result: 'sent', ageMs: 1 });
    const before = loaded();
    await metrics.metrics();
    process.stdout.write(JSON.stringify([before, loaded()]));
    process.exit(0);`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH },
  });
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual([false, true]);
});

/** Metrics of a process in which every read of the store throws. */
function metricsWhile(fault: Error, isRedisReady: boolean, hooks: () => readonly HookState[] = () => []) {
  // Metrics only read.
  const store = { read: () => Promise.reject(fault) } as never;
  return createMetrics({ store, clock: systemClock, ...freeLoop, isRedisReady: () => isRedisReady, hooks });
}
