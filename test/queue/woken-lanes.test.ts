/**
 * Sequences of what people do, against lanes that a worker reaches only through real wakes in Redis and BullMQ: one
 * process only takes messages in, another works the lanes. No sweeper runs and no lease expires, so a lost wake
 * leaves a message waiting. Limited by time; `PARLEY_LONG=1` plays for a minute on each database.
 */

import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { type QueueMode, queueModes } from '../../src/contracts/queue-settings.ts';
import { redisKeys } from '../../src/redis/connection.ts';
import type { Store } from '../../src/store/base/command.ts';
import { startOwnRedis } from '../e2e/redis-faults.ts';
import { aCommand, aLane, aMessage, defaults, newCommand, unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { type LaneFacts, readLane } from '../store/lane-at-rest.ts';
import { holds } from '../support/holds.ts';
import { isLong } from '../support/long-run.ts';
import { patienceMs } from '../support/patience.ts';
import { type LaneProcess, openLaneProcess } from './lane-process.ts';

const seed = Number(process.env.QUEUE_SEED ?? Date.now() % 1e9);

const who = fc.constantFrom('ann', 'bob');
const at = fc.constantFrom('door' as const, 'both' as const);
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('arrive' as const), who, at }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('mode' as const), mode: fc.constantFrom(...queueModes) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('stop' as const), who, at }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('new' as const), who, at }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pause' as const), ms: fc.nat({ max: 6 }) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

/** Lanes played concurrently: more than there are slots. */
const atOnce = 8;
const scene = fc.record({
  mode: fc.constantFrom<QueueMode>(...queueModes),
  steps: fc.array(step, { minLength: 1, maxLength: 25 }),
});

describeEachDatabase('lanes that are woken through Redis', (open, beside) => {
  it('ends every message in one outcome, in order and read at most once, when wakes come through Redis', async () => {
    const redis = await startOwnRedis((end) => onTestFinished(end));
    const keys = redisKeys(unique('woken'));
    const think = () => pause(Math.random() * 4);
    const common = { redisSocket: redis.socketPath, keys, think };
    const both = await openLaneProcess({ ...common, store: open(), slots: 4 });
    onTestFinished(both.close);
    const otherStore = await beside.open();
    onTestFinished(() => otherStore.close());
    const door = await openLaneProcess({ ...common, store: otherStore, slots: 0 });
    onTestFinished(door.close);
    let played = 0;
    await holds(
      fc.asyncProperty(fc.array(scene, { minLength: atOnce, maxLength: atOnce }), async (scenes) => {
        const doors = { both, door };
        await Promise.all(scenes.map((one) => play({ store: open(), doors, ...one })));
        played += scenes.length;
      }),
      {
        ...{ seed, numRuns: 1_000_000, endOnFailure: true },
        ...{ interruptAfterTimeLimit: isLong ? 60_000 : 3_000 },
      },
    );
    console.info(`${beside.dialect}: ${played} sequences over real wakes, seed ${seed}`);
  }, 300_000);
});

type Playing = {
  readonly store: Store;
  readonly doors: { readonly both: LaneProcess; readonly door: LaneProcess };
  readonly mode: QueueMode;
  readonly steps: readonly Step[];
};

async function play({ store, doors, mode, steps }: Playing): Promise<void> {
  const conversation = unique('c');
  const lane = aLane(conversation, { settings: { ...defaults, mode, quietMs: 0 } });
  const texts: string[] = [];
  const modes = new Set([mode]);
  for (const one of steps) {
    switch (one.kind) {
      case 'arrive':
        texts.push(`text ${texts.length}`);
        await doors[one.at].accept(
          aMessage({ conversation, text: texts.at(-1) ?? '', sender: one.who, lane }),
        );
        break;
      case 'new': {
        const message = aMessage({ conversation, text: '/new', sender: one.who, lane });
        if (message.decision.kind !== 'accept') break;
        const { item } = message.decision;
        const content = { ...item.content, command: newCommand };
        const command = { ...item, kind: 'command', content } as const;
        await doors[one.at].accept({ ...message, decision: { kind: 'accept', item: command } });
        break;
      }
      case 'stop':
      case 'mode': {
        const effect =
          one.kind === 'mode'
            ? ({ kind: 'queue', change: { mode: one.mode } } as const)
            : ({ kind: 'stop', isPrivileged: false, isAll: false } as const);
        if (one.kind === 'mode') modes.add(one.mode);
        const command = aCommand(conversation, effect, one.kind === 'stop' ? one.who : 'ann');
        if (command.decision.kind !== 'command') break;
        await doors.door.accept({ ...command, decision: { ...command.decision, lane } });
        break;
      }
      case 'pause':
        await pause(one.ms);
        break;
      default:
        one satisfies never;
    }
  }
  const { inbox, told } = await untilRested(store, lane.key);
  const said = inbox.filter(({ messageId }) => messageId !== null);
  expect(said.every(({ state, outcome }) => state === 'ended' && outcome !== null)).toBe(true);
  const shown = told.filter(({ role }) => role === 'user').map(({ text }) => text);
  expect(new Set(shown).size).toBe(shown.length);
  // An interruption may run a newer message first; nothing else does.
  if (!modes.has('interrupt')) expect(shown).toEqual(texts.filter((text) => shown.includes(text)));
  const answered = inbox.filter(({ outcome, reason }) => outcome === 'answered' && reason !== 'command');
  expect(answered.every(({ transcriptId }) => transcriptId !== null)).toBe(true);
}

async function untilRested(store: Store, laneKey: string): Promise<LaneFacts> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const facts = await readLane(store, laneKey);
    const isResting = facts.openRuns === 0 && facts.inbox.every(({ state }) => state === 'ended');
    if (isResting) return facts;
    if (performance.now() > deadline) throw new Error(`${laneKey} never rests: ${JSON.stringify(facts)}`);
    await pause(2);
  }
}
