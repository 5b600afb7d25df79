import { z } from 'zod';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import { queueModes } from '#contracts/queue-settings.ts';
import type { Closers } from '../processes/closers.ts';
import type { Feed } from '../queue/feed.ts';
import { setLaneMode } from '../store/lanes/session.ts';
import { type LanePlace, readLiveLanes } from '../store/reads/read-live-lanes.ts';
import { operation, Refusal, type StoreDeps } from './operation.ts';
import { waitingItem } from './queue.ts';

export type LanesDeps = StoreDeps & {
  readonly log: Log;
  readonly lanes: {
    readonly changes: LaneChanges;
    /** Duration of leases on lanes, ms. */
    readonly leaseMs: number;
  };
  /** Called when a lane has changed, since no effect notifies its clients. */
  changed(laneKey: string): void;
};

/** Longest wait for a change, ms: a proxy may cut off a request that takes a minute. */
const longestWaitMs = 30_000;
const pageSize = 25;

const place = z
  .string()
  .max(2_100)
  .regex(/^(?:busy|idle):/)
  .transform((text): LanePlace => ({ group: text.startsWith('busy') ? 'busy' : 'idle', key: text.slice(5) }));

const lane = z.object({
  key: z.string(),
  class: z.string().describe('`main`: a conversation, whose mode and waiting messages may be changed'),
  agentId: z.string(),
  title: z.string().optional(),
  mode: z.string(),
  state: z
    .enum(['active', 'parked', 'unheld', 'due', 'armed', 'idle'])
    .describe(
      '`unheld`: a run without a holder; `due`: waiting for a free worker; `armed`: waiting for a later time',
    ),
  holder: z
    .object({
      id: z.string(),
      role: z.string().exactOptional(),
      leaseAgeMs: z.int().describe('Since its last renewal'),
    })
    .exactOptional()
    .describe('The process that is working on it'),
  run: z
    .object({
      id: z.string(),
      kind: z.string(),
      ageMs: z.int(),
      waitsFor: z.string().exactOptional().describe('While it is parked'),
      isStopping: z.boolean(),
    })
    .exactOptional(),
  waiting: z.array(waitingItem).readonly().describe('The next ones, 20 at most'),
  waitingCount: z.int(),
});

/** Waits for a change first, if the caller has seen the current state. */
export const listLanes = operation({
  name: 'lanes',
  method: 'GET',
  right: 'owner',
  scope: 'read',
  summary: 'Lists lanes 25 at a time: those with a run or waiting messages first, then idle conversations',
  input: z.object({
    after: place.exactOptional().describe('`next` of the previous page'),
    since: z.coerce
      .number()
      .exactOptional()
      .describe('`version` of an earlier answer: this one comes once a lane has changed'),
    waitMs: z.coerce.number().int().min(0).max(longestWaitMs).default(0).describe('Longest such wait'),
  }),
  answer: z.object({
    lanes: z.array(lane).readonly(),
    next: z.string().exactOptional().describe('Absent on the last page'),
    version: z.number(),
  }),
  run: async ({ store, lanes }: LanesDeps, { after, since, waitMs }, { signal }) => {
    const { changes, leaseMs } = lanes;
    if (since !== undefined) await changes.waitAfter(since, waitMs, signal);
    // Taken before reading, so that a change in the meantime causes another read.
    const version = changes.current();
    const { next, ...page } = await store.read(readLiveLanes, { after, limit: pageSize, leaseMs });
    return { ...page, ...(next && { next: `${next.group}:${next.key}` }), version };
  },
});

export const setMode = operation({
  name: 'lanes/mode',
  method: 'POST',
  right: 'owner',
  scope: 'operate',
  summary: 'Changes the queue mode of a conversation, as the chat command does',
  input: z.strictObject({ lane: z.string().min(1).max(2_048), mode: z.enum(queueModes) }),
  answer: z.object({ status: z.literal('done') }),
  refusals: ['not_found'],
  run: async ({ store, log, changed }: LanesDeps, { lane: laneKey, mode }) => {
    if (!(await store.write(setLaneMode, { laneKey, mode }))) return new Refusal('not_found');
    log.info({ laneKey, mode }, 'lane.mode-changed');
    changed(laneKey);
    return { status: 'done' as const };
  },
});

/** Tells a waiting caller of the next change, so that it causes no reads until there is one. */
export type LaneChanges = {
  /** A number that every change raises. */
  current(): number;
  /** Resolves when the version isn't `known` any more, after `waitMs`, or when the signal aborts. */
  waitAfter(known: number, waitMs: number, signal: AbortSignal): Promise<void>;
};

/**
 * Counts the lane changes that this process hears of. Starts at the current time, so no earlier process used the
 * number.
 */
export function countLaneChanges({
  clock,
  feed,
  closers,
}: {
  readonly clock: Clock;
  readonly feed: Pick<Feed, 'watchAll'>;
  readonly closers: Closers;
}): LaneChanges {
  let version = clock.now();
  const waiting = new Set<() => void>();
  const stopping = new AbortController();
  closers.add('owner lanes', async () => stopping.abort());
  const onChange = () => {
    version += 1;
    for (const wake of waiting) wake();
  };
  feed.watchAll(onChange, stopping.signal);
  return {
    current: () => version,
    waitAfter: async (known, waitMs, signal) => {
      if (known !== version) return;
      const changed = new AbortController();
      const wake = () => changed.abort();
      waiting.add(wake);
      await clock.wait(waitMs, AbortSignal.any([signal, stopping.signal, changed.signal]));
      waiting.delete(wake);
    },
  };
}
