/** The metrics and what they count; docs/metrics.md describes them for operators. */
import { setTimeout as delay } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry as PromRegistry } from 'prom-client';
import type { Acceptance } from '#contracts/acceptance.ts';
import type { Clock } from '#contracts/clock.ts';
import { isStoreAway } from '#contracts/errors.ts';
import type { HookState } from '#contracts/hook.ts';
import type { LoopWatch } from '../../logging/loop-watch.ts';
import type { WaitingCalls } from '../../models/provider-waits.ts';
import type { MarkdownFormatter } from '../../replies/markdown-formatter.ts';
import type { Store } from '../../store/base/command.ts';
import { type OpenCounts, readOpenCounts } from '../../store/reads/read-open-counts.ts';
import { createChildGauges } from './child-gauges.ts';
import { createTallies, type Tallies, type Tally } from './tally.ts';
import { createTaskGauges } from './task-gauges.ts';

export type MetricsDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly loop: Pick<LoopWatch, 'delays' | 'held'>;
  readonly formatter: Pick<MarkdownFormatter, 'counts'>;
  isRedisReady(): boolean;
  /** The calls that wait to ask the model again; absent in a process without model calls. */
  modelWaits?(): WaitingCalls;
  /** The handlers of hooks; absent in a process without hooks. */
  hooks?(): readonly HookState[];
};

/** A part whose call to the platform has ended. Times in ms. */
export type DeliveredPart = {
  readonly channel: string;
  /** `sent`, `unknown`, `failed` or another end of the attempt. */
  readonly result: string;
  /** From the commit that stored it to the platform's answer. */
  readonly ageMs: number;
};

export interface Registry {
  text(): Promise<string>;
  delivered(part: DeliveredPart): void;
  overflowed(drop: string): void;
  missed(channel: string): void;
  received(channel: string, acceptances: readonly Acceptance[]): void;
}

/** A database that doesn't even return an error within this time, ms, is unreachable. */
const patienceMs = 8_000;

export function createRegistry(deps: MetricsDeps): Registry {
  const registry = new PromRegistry();
  collectDefaultMetrics({ register: registry });
  const show = { ...messageGauges(registry), ...queueGauges(registry), ...upGauges(registry) };
  const childGauges = createChildGauges(registry);
  const taskGauges = createTaskGauges(registry);
  const loop = loopGauges(registry);
  const deliveries = new Histogram({
    name: 'parley_delivery_seconds',
    help: "Time from the commit that stored a part to the platform's answer, for parts that were sent.",
    labelNames: ['channel'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
    registers: [registry],
  });
  const attempts = new Counter({
    name: 'parley_delivery_attempts_total',
    help: 'Calls that deliver a part, by how they ended.',
    labelNames: ['channel', 'result'],
    registers: [registry],
  });
  const overflows = new Counter({
    name: 'parley_queue_overflows_total',
    help: 'Messages that arrived at a full lane, by drop policy.',
    labelNames: ['drop'],
    registers: [registry],
  });
  const missed = new Counter({
    name: 'parley_events_missed_total',
    help: "Reports that events of a channel may have been missed, or couldn't be read.",
    labelNames: ['channel'],
    registers: [registry],
  });
  const showHooks = hookCounter(registry);
  const tallies = createTallies(deps);
  return {
    text: async () => {
      const counted = await unlessAway(countRows(deps, tallies));
      show.redisUp.set(deps.isRedisReady() ? 1 : 0);
      show.storeUp.set(counted === undefined ? 0 : 1);
      showMessages(show, counted);
      showQueue(show, counted);
      childGauges.show(counted && { ended: counted.children, ...counted.open });
      taskGauges.show(
        counted && { tasks: counted.open.tasks, ended: counted.tasks, endedSubtasks: counted.subtasks },
      );
      showModelWaits(show, deps);
      showLoop(loop, deps);
      showHooks(deps.hooks?.() ?? []);
      return registry.metrics();
    },
    delivered: ({ channel, result, ageMs }) => {
      attempts.inc({ channel, result });
      if (result === 'sent') deliveries.observe({ channel }, ageMs / 1000);
    },
    received: receivedCounter(registry),
    overflowed: (drop) => overflows.inc({ drop }),
    missed: (channel) => missed.inc({ channel }),
  };
}

async function countRows({ store }: MetricsDeps, tallies: Tallies): Promise<StoreCounts> {
  return {
    open: await store.read(readOpenCounts, {}),
    messages: joinTallies(
      withSource(await tallies.count('messages'), 'platform'),
      await tallies.count('items'),
      await tallies.count('missing'),
    ),
    runs: await tallies.count('runs'),
    parts: await tallies.count('parts'),
    children: await tallies.count('children'),
    tasks: await tallies.count('tasks'),
    subtasks: await tallies.count('subtasks'),
  };
}

function receivedCounter(registry: PromRegistry): Registry['received'] {
  const events = new Counter({
    name: 'parley_events_total',
    help: 'Events of a channel by what intake decided, and why it ignored or refused them.',
    labelNames: ['channel', 'outcome', 'reason'],
    registers: [registry],
  });
  return (channel, acceptances) => {
    for (const acceptance of acceptances)
      events.inc({
        channel,
        outcome: acceptance.kind,
        reason: 'reason' in acceptance ? acceptance.reason : '',
      });
  };
}

/** Returns a function that shows the failures that each handler has counted since the start. */
function hookCounter(registry: PromRegistry): (hooks: readonly HookState[]) => void {
  const failed = new Counter({
    name: 'parley_hook_failures_total',
    help: 'Failures of hook handlers, by hook and by the plugin or script that it belongs to.',
    labelNames: ['hook', 'source'],
    registers: [registry],
  });
  return (hooks) => {
    failed.reset();
    for (const { event: hook, owner: source, failures } of hooks) failed.inc({ hook, source }, failures);
  };
}

type StoreCounts = {
  readonly open: OpenCounts;
  /** By place and source, such as `waiting@api`. */
  readonly messages: Tally;
  readonly runs: Tally;
  readonly parts: Tally;
  readonly children: Tally;
  readonly tasks: Tally;
  readonly subtasks: Tally;
};

async function unlessAway(counting: Promise<StoreCounts>): Promise<StoreCounts | undefined> {
  const ended = new AbortController();
  const counted = counting.catch((error: unknown) => {
    // Callers of the store have logged why it is unreachable. A refused statement is our fault.
    if (isStoreAway(error)) return undefined;
    throw error;
  });
  const patience = delay(patienceMs, undefined, { signal: ended.signal, ref: false });
  try {
    return await Promise.race([counted, patience.catch(() => undefined)]);
  } finally {
    ended.abort();
  }
}

const outcomes = ['answered', 'silent', 'merged', 'cancelled', 'refused', 'failed'];
const openStates = ['held', 'waiting', 'taken', 'lost'];
/** Sources that are always shown, so that an alert on `lost` has a value to start from. */
const usualSources = ['platform', 'api', 'child', 'job'];
const partStates = ['pending', 'sending', 'sent', 'unknown', 'failed'];
const laneStates = ['active', 'parked', 'unheld', 'armed', 'due'] as const;

function messageGauges(registry: PromRegistry) {
  const registers = [registry];
  return {
    accepted: new Gauge({
      name: 'parley_messages_accepted',
      help: 'Messages that were ever accepted: the sum of the ended and the unaccounted.',
      labelNames: ['source'],
      registers,
    }),
    ended: new Gauge({
      name: 'parley_messages_ended',
      help: 'Accepted messages that have ended, by outcome; a delivery that fails later moves one to failed.',
      labelNames: ['outcome', 'source'],
      registers,
    }),
    unaccounted: new Gauge({
      name: 'parley_messages_unaccounted',
      help: 'Accepted messages without an outcome: held, waiting and taken are in progress, lost must be 0.',
      labelNames: ['state', 'source'],
      registers,
    }),
    runs: new Gauge({
      name: 'parley_runs_ended',
      help: 'Runs that have ended, by reason.',
      labelNames: ['reason'],
      registers,
    }),
    provisional: new Gauge({
      name: 'parley_messages_provisional',
      help: 'Messages counted as answered whose answer is still being delivered, which may change the outcome.',
      labelNames: ['source'],
      registers,
    }),
    parts: new Gauge({
      name: 'parley_outbox_parts',
      help: 'Parts of answers and notices, by state; unknown ones may or may not have arrived.',
      labelNames: ['state'],
      registers,
    }),
  };
}

function queueGauges(registry: PromRegistry) {
  const registers = [registry];
  return {
    queued: new Gauge({
      name: 'parley_queue_items',
      help: 'Rows now waiting in lanes, including corrections and commands.',
      labelNames: ['state'],
      registers,
    }),
    oldest: new Gauge({
      name: 'parley_queue_oldest_seconds',
      help: 'Age of the oldest waiting row; 0 when none is waiting.',
      registers,
    }),
    longParts: new Gauge({
      name: 'parley_outbox_long_waits',
      help: 'Parts that have waited, or have to wait, for more than 5 min: because their platform asks for it, or for another reason.',
      labelNames: ['cause'],
      registers,
    }),
    oldestPart: new Gauge({
      name: 'parley_outbox_oldest_seconds',
      help: 'Age of the oldest part that is still to be delivered; 0 when there is none.',
      registers,
    }),
    modelWaits: new Gauge({
      name: 'parley_model_waiting_calls',
      help: 'Calls of this process that wait to ask the model again after a failure.',
      registers,
    }),
    modelWaited: new Gauge({
      name: 'parley_model_waiting_seconds',
      help: 'Longest time that a call of this process has waited to ask the model again; 0 when none is waiting.',
      registers,
    }),
    obligations: new Gauge({
      name: 'parley_obligations_unaccounted',
      help: 'Obligations that nothing will end, by kind: must be 0.',
      labelNames: ['kind'],
      registers,
    }),
    lanes: new Gauge({
      name: 'parley_lanes',
      help: 'Lanes in which something runs or waits.',
      labelNames: ['state'],
      registers,
    }),
  };
}

function upGauges(registry: PromRegistry) {
  const registers = [registry];
  return {
    storeUp: new Gauge({
      name: 'parley_store_up',
      help: '1 when the database answered this request; without it there are no counts.',
      registers,
    }),
    redisUp: new Gauge({ name: 'parley_redis_up', help: '1 when Redis is connected.', registers }),
  };
}

function loopGauges(registry: PromRegistry) {
  const registers = [registry];
  return {
    delay: new Gauge({
      name: 'parley_loop_delay_seconds',
      help: 'How late the event loop was since the last request; quantile 1 is the maximum.',
      labelNames: ['quantile'],
      registers,
    }),
    held: new Gauge({
      name: 'parley_loop_held',
      help: 'How often the event loop of this process was held for more than 50 ms.',
      registers,
    }),
    texts: new Gauge({
      name: 'parley_texts_parsed_aside',
      help: 'Long texts parsed in a thread next to the event loop, and those given up and sent as plain text.',
      labelNames: ['result'],
      registers,
    }),
  };
}

function showLoop(
  { delay, held, texts }: ReturnType<typeof loopGauges>,
  { loop, formatter }: Pick<MetricsDeps, 'loop' | 'formatter'>,
): void {
  const { p50, p99, max } = loop.delays();
  delay.set({ quantile: '0.5' }, p50);
  delay.set({ quantile: '0.99' }, p99);
  delay.set({ quantile: '1' }, max);
  held.set(loop.held());
  const { parsed, givenUp } = formatter.counts();
  texts.set({ result: 'parsed' }, parsed);
  texts.set({ result: 'plain' }, givenUp);
}

type Shown = ReturnType<typeof messageGauges> & ReturnType<typeof queueGauges>;

/** Without a store there are no counts: stale ones would hide the very problem they are meant to show. */
function showMessages(show: Shown, counted: StoreCounts | undefined): void {
  const { ended, unaccounted, provisional } = show;
  for (const gauge of [ended, unaccounted, show.runs, show.parts, show.accepted, provisional]) gauge.reset();
  if (counted === undefined) return;
  const { messages, runs, parts } = counted;
  const seen = Object.keys(messages).map((place) => place.replace(/.*@/, ''));
  for (const source of new Set([...usualSources, ...seen])) {
    const at = (place: string) => messages[`${place}@${source}`] ?? 0;
    for (const outcome of outcomes) show.ended.set({ outcome, source }, at(`ended:${outcome}`));
    show.ended.inc({ outcome: 'answered', source }, at('provisional'));
    show.provisional.set({ source }, at('provisional'));
    for (const state of openStates) show.unaccounted.set({ state, source }, at(state));
  }
  for (const source of usualSources) show.accepted.set({ source }, 0);
  for (const [place, count] of Object.entries(messages))
    show.accepted.inc({ source: place.replace(/.*@/, '') }, count);
  for (const [reason, count] of Object.entries(runs))
    if (reason !== 'active') show.runs.set({ reason }, count);
  for (const state of partStates) show.parts.set({ state }, parts[state] ?? 0);
}

function withSource(tally: Tally, source: string): Tally {
  return Object.fromEntries(Object.entries(tally).map(([place, count]) => [`${place}@${source}`, count]));
}

function joinTallies(...tallies: readonly Tally[]): Tally {
  const sum: Record<string, number> = {};
  for (const [place, count] of tallies.flatMap((tally) => Object.entries(tally)))
    sum[place] = (sum[place] ?? 0) + count;
  return sum;
}

function showQueue(show: Shown, counted: StoreCounts | undefined): void {
  const { queued, oldest, longParts, oldestPart, obligations } = show;
  for (const gauge of [queued, show.lanes, oldest, longParts, oldestPart, obligations]) gauge.reset();
  if (counted === undefined) {
    oldest.remove();
    oldestPart.remove();
    return;
  }
  const { items, lanes, oldestWaitingSince, parts, lostQuestions, lostFiles, lost, now } = counted.open;
  obligations.set({ kind: 'approval' }, lostQuestions);
  obligations.set({ kind: 'attachment' }, lostFiles);
  obligations.set({ kind: 'task' }, lost.tasks + (counted.tasks.lost ?? 0));
  obligations.set({ kind: 'subtask' }, lost.subtasks + (counted.subtasks.lost ?? 0));
  show.queued.set({ state: 'held' }, items.held);
  show.queued.set({ state: 'waiting' }, items.waiting);
  const since = oldestWaitingSince ?? now;
  show.oldest.set(Math.max(0, now - since) / 1000);
  for (const state of laneStates) show.lanes.set({ state }, lanes[state]);
  longParts.set({ cause: 'platform' }, parts.asked);
  longParts.set({ cause: 'other' }, parts.late);
  oldestPart.set(Math.max(0, now - (parts.oldestSince ?? now)) / 1000);
}

function showModelWaits(show: Shown, { clock, modelWaits }: MetricsDeps): void {
  const { count = 0, since = clock.now() } = modelWaits?.() ?? {};
  show.modelWaits.set(count);
  show.modelWaited.set(Math.max(0, clock.now() - since) / 1000);
}
