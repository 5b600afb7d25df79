/**
 * The race at the end of a run, with everything real but the model: each message arrives within 1.5 ms of the commit
 * that ends the run before it; the aim is learned from what earlier messages met. No sweeper runs, so a message that
 * isn't taken without one is never taken. `PARLEY_LONG=1` plays 100,000 messages (RACE_MESSAGES: any number,
 * RACE_SEED: the same delays again).
 */

import { setTimeout as pause } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import type { ModelRequest } from '../../src/contracts/model.ts';
import { type QueueMode, queueModes } from '../../src/contracts/queue-settings.ts';
import { redisKeys } from '../../src/redis/connection.ts';
import type { Store } from '../../src/store/base/command.ts';
import { createRandom } from '../e2e/random.ts';
import { startOwnRedis } from '../e2e/redis-faults.ts';
import { aLane, aMessage, defaults, unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { type LaneFacts, readLane } from '../store/lane-at-rest.ts';
import { isLong } from '../support/long-run.ts';
import { type Arrived, type LaneProcess, openLaneProcess } from './lane-process.ts';

const messages = Number(process.env.RACE_MESSAGES ?? (isLong ? 100_000 : 2_000));
/** PostgreSQL is reached over a network protocol and takes five times as long. */
const share = { sqlite: 0.9, postgres: 0.1 } as const;
const seed = Number(process.env.RACE_SEED ?? (isLong ? Date.now() % 1e9 : 20_261_121));
/** Messages per lane; many lanes with few messages each, so that no request grows long. */
const perLane = 25;
const lanesAtOnce = 40;
/** Counted and reported only, because on a loaded machine a message may wait this long for a processor. */
const lateMs = 1_500;
/** Nothing here repairs a lost wake: no sweeper, no expiring lease. A message still waiting after this is lost. */
const lostMs = 10_000;
/** Losing more would show nothing new. */
const enoughLost = 10;

describeEachDatabase('messages that arrive as a run ends', (open, beside) => {
  it('takes each message that arrives as a run ends once, in order, in every mode, without a sweep', async () => {
    const redis = await startOwnRedis((end) => onTestFinished(end));
    const race = createRace();
    const keys = redisKeys(unique('race'));
    const common = { redisSocket: redis.socketPath, keys, think: race.think };
    const both = await openLaneProcess({ ...common, store: open(), slots: 2 * lanesAtOnce });
    onTestFinished(both.close);
    const otherStore = await beside.open();
    onTestFinished(() => otherStore.close());
    const door = await openLaneProcess({ ...common, store: otherStore, slots: 0 });
    onTestFinished(door.close);

    const started = performance.now();
    const lanes: RacingLane[] = [];
    // The race continues until arrivals fell on both sides of the commit that closes a run, in both processes.
    do {
      const more = planLanes(Math.ceil((messages * share[beside.dialect]) / perLane), [both, door]);
      lanes.push(...more);
      await eachAtOnce(more, (lane) => race.play(lane));
    } while (Math.min(race.met.joined, race.met.begun, race.met.woken) < 10);
    const { clashes, lost, late, slowestMs } = race.found;
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    const met = JSON.stringify(race.met);
    console.info(
      `${beside.dialect}: ${race.found.played} messages in ${seconds} s, seed ${seed}, ${met}; slowest ${slowestMs.toFixed(0)} ms, ${late.length} after more than ${lateMs} ms, ${lost.length} lost wake-ups`,
    );

    expect(clashes, `seed ${seed}: two runs of one lane at once`).toEqual([]);
    expect(lost, `seed ${seed}: nobody took them`).toEqual([]);
    for (const { lane, mode, texts } of lanes) {
      const { inbox, told, openRuns } = await untilRested(open(), lane.key);
      expect(told.map(({ text }) => text)).toEqual(texts);
      expect(inbox).toHaveLength(texts.length);
      expect(inbox.filter(({ state, outcome }) => state !== 'ended' || !isLawful(mode, outcome))).toEqual([]);
      expect(openRuns).toBe(0);
    }
  }, 3_600_000);
});

type RacingLane = {
  readonly mode: QueueMode;
  readonly door: LaneProcess;
  readonly lane: ReturnType<typeof aLane>;
  readonly conversation: string;
  readonly texts: readonly string[];
  readonly random: () => number;
};

/** Plans lanes in each mode, with intake in the process that works the lanes and in another process. */
function planLanes(count: number, doors: readonly [LaneProcess, LaneProcess]): readonly RacingLane[] {
  return Array.from({ length: count }, (_, index) => {
    const mode = queueModes[index % queueModes.length] ?? 'steer';
    const door = Math.floor(index / queueModes.length) % 2 === 0 ? doors[0] : doors[1];
    const conversation = unique('race');
    // A short quiet window leaves the lane armed instead of continuing.
    const quietMs = mode === 'collect' ? index % 3 : 0;
    return {
      ...{ mode, door, conversation },
      lane: aLane(conversation, { settings: { ...defaults, mode, quietMs, cap: 1000 } }),
      texts: Array.from({ length: perLane }, (_, n) => `<${conversation} ${n}>`),
      random: createRandom(seed + index),
    };
  });
}

async function eachAtOnce<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const workOff = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: lanesAtOnce }, workOff));
}

/** Waits until the lane has no open run: its last run ends after the model was shown the last message. */
async function untilRested(store: Store, laneKey: string): Promise<LaneFacts> {
  const deadline = performance.now() + lostMs;
  for (;;) {
    const { openRuns } = await readLane(store, laneKey);
    // Read again: on PostgreSQL the messages were read before the runs, and the last one may have ended in between.
    if (openRuns === 0 || performance.now() > deadline) return readLane(store, laneKey);
    await pause(10);
  }
}

function isLawful(mode: QueueMode, outcome: string | null): boolean {
  const lawful = ['answered', 'merged', ...(mode === 'interrupt' ? ['cancelled'] : [])];
  return outcome !== null && lawful.includes(outcome);
}

/** Creates the race: the model, and the messages that wait to be shown to it. */
function createRace() {
  const awaited = new Map<string, () => void>();
  const thinking = new Map<string, AbortSignal>();
  const random = createRandom(seed - 1);
  const met: Record<Arrived, number> = { joined: 0, begun: 0, woken: 0, other: 0 };
  const found = {
    clashes: [] as string[],
    lost: [] as string[],
    late: [] as string[],
    slowestMs: 0,
    played: 0,
  };

  const think = async (request: ModelRequest, signal: AbortSignal) => {
    const texts = newTextsOf(request);
    const lane = texts[0]?.split(' ')[0] ?? '';
    if (thinking.has(lane)) found.clashes.push(lane);
    thinking.set(lane, signal);
    // An aborted call keeps running for a moment, in parallel with the next run.
    signal.addEventListener('abort', () => thinking.get(lane) === signal && thinking.delete(lane));
    for (const text of texts) awaited.get(text)?.();
    await delay(2 * random());
    if (thinking.get(lane) === signal) thinking.delete(lane);
  };

  /** Returns how long it took until the model was shown the text, or undefined if it wasn't shown in time. */
  const untilShown = async (text: string): Promise<number | undefined> => {
    const since = performance.now();
    const { promise, resolve } = Promise.withResolvers<number>();
    awaited.set(text, () => resolve(performance.now() - since));
    const patience = new AbortController();
    const late = pause(lostMs, undefined, { signal: patience.signal }).catch(() => undefined);
    const tookMs = await Promise.race([promise, late]);
    patience.abort();
    awaited.delete(text);
    return tookMs;
  };

  /** How long after the model was shown a message its run ends, ms; the next message is aimed there. */
  const aims = new Map<LaneProcess, number>();
  const aimAt = (door: LaneProcess) => aims.get(door) ?? 2;

  const play = async ({ door, conversation, lane, texts, random: own }: RacingLane): Promise<void> => {
    for (const text of texts) {
      if (found.lost.length >= enoughLost) return;
      const shown = untilShown(text);
      const arrived = await door.accept(aMessage({ conversation, text, lane }));
      met[arrived] += 1;
      aims.set(door, Math.max(0, aimAt(door) + (arrived === 'joined' ? 0.2 : -0.2)));
      const tookMs = await shown;
      if (tookMs === undefined) return void found.lost.push(text);
      found.played += 1;
      found.slowestMs = Math.max(found.slowestMs, tookMs);
      if (tookMs > lateMs) found.late.push(`${text} after ${tookMs.toFixed(0)} ms`);
      await delay(aimAt(door) + 3 * own() - 1.5);
    }
  };
  return { think, play, met, found };
}

/** Returns what was said since the last answer; a run that was stopped in time has left none. */
function newTextsOf({ messages: history }: ModelRequest): readonly string[] {
  const last = history.at(-1);
  if (last?.role !== 'user') return [];
  return last.content.flatMap((block) => (block.type === 'text' ? (block.text.match(/<[^>]+>/g) ?? []) : []));
}

/** Waits, even for less than any timer can. */
async function delay(ms: number): Promise<void> {
  if (ms >= 1) return pause(ms);
  for (let turns = Math.floor(ms * 20); turns > 0; turns--) await new Promise(setImmediate);
}
