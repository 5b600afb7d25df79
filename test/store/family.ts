import { formatSessionKey } from '#contracts/session-key.ts';
import type { ChildMode, SpawnLimits } from '../../src/contracts/child.ts';
import type { AgentId, SessionKey } from '../../src/contracts/ids.ts';
import type { MessagePart } from '../../src/contracts/message.ts';
import type { QueueSettings } from '../../src/contracts/queue-settings.ts';
import type { Store } from '../../src/store/base/command.ts';
import type { LaneSpec } from '../../src/store/base/keys.ts';
import { childIdOf } from '../../src/store/children/child.ts';
import { type SpawnInput, type SpawnResult, spawnChild } from '../../src/store/children/spawn-child.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import type { AnswerResult } from '../../src/store/lanes/commit-answer.ts';
import { commitToolTurn, markToolStarted } from '../../src/store/lanes/commit-turn.ts';
import { parkRun } from '../../src/store/lanes/park-run.ts';
import { readSweep, sweepChild } from '../../src/store/lanes/sweep.ts';
import { callIdOf } from '../../src/store/money/model-call.ts';
import { aLane, aMessage, aWorker, defaults, endWithout, holder, unique } from './builders.ts';
import { counted } from './call-builders.ts';

export const limits: SpawnLimits = { depth: 5, children: 5, nodes: 20, lifetime: 200, treeMs: 3_600_000 };

export const fenceOf = ({ laneKey, epoch, runId }: ClaimedRun) => ({ laneKey, epoch, runId });

export type Spawning = {
  readonly callId?: string;
  readonly mode?: ChildMode;
  readonly limits?: Partial<SpawnLimits>;
  readonly over?: Partial<SpawnInput>;
};

/** Returns one process that works on children, with short names for its steps. `cost`: of each of its model calls. */
export function aFamilyWorker(
  store: Store,
  {
    name = holder,
    caps,
    cost = 7,
  }: { readonly name?: string; readonly caps?: Record<string, number>; readonly cost?: number } = {},
) {
  const people = aWorker(store, name, caps);
  const { claimRun } = people;

  /** Makes a conversation whose first message has started a run. */
  const begin = async (mode: QueueSettings['mode'] = 'steer', over: Partial<QueueSettings> = {}) => {
    const conversation = unique('c');
    const lane = aLane(conversation, { settings: { ...defaults, mode, ...over } });
    await people.accept(aMessage({ conversation, text: 'go', lane }));
    return { conversation, lane, run: await claimRun(lane.key) };
  };

  const inputOf = (
    run: ClaimedRun,
    { callId = unique('call'), mode = 'announce', over, ...rest }: Spawning,
  ): SpawnInput => {
    const depth = depthOf(run.laneKey) + 1;
    return {
      ...fenceOf(run),
      ...{ callId, mode, task: `task of ${callId}`, agentId: 'main', context: 'isolated' },
      role: { depth, profile: 'task', deniedTools: [] },
      limits: { ...limits, ...rest.limits },
      lane: childLane(run, callId, depth),
      ...over,
    };
  };

  /** Spawns as the loop does: the turn with the call is stored and the call has started before its tool spawns. */
  const spawn = async (run: ClaimedRun, spawning: Spawning = {}): Promise<SpawnResult> => {
    const input = inputOf(run, spawning);
    const { callId } = input;
    const messageId = unique('message');
    const data = { id: callId, name: 'sessions_spawn', input: '{}', finished: true };
    const parts: readonly MessagePart[] = [
      { type: 'tool_call', data },
      { type: 'finish', data: { reason: 'tool_use', time: 1 } },
    ];
    const message = { id: messageId, sessionId: run.sessionId, model: 'test', parts };
    const calls = [{ callId, name: 'sessions_spawn', input: '{}' }];
    await store.write(commitToolTurn, { ...fenceOf(run), message, calls });
    await store.write(markToolStarted, { ...fenceOf(run), messageId, callId });
    return store.write(spawnChild, input);
  };

  const spawnOne = async (run: ClaimedRun, spawning: Spawning = {}) => {
    const spawned = await spawn(run, spawning);
    if (spawned.kind === 'refused') throw new Error(`refused: ${spawned.reason}`);
    return spawned.child;
  };

  const answer = (
    run: ClaimedRun,
    text = 'done',
    over: { readonly mayKeepLane?: boolean } = {},
  ): Promise<AnswerResult> =>
    people.answer(run, text, {
      ...{ parts: [], modelCalls: [counted(run, { cost })], mayKeepLane: false },
      ...over,
    });

  const fail = (run: ClaimedRun, endReason = 'error') =>
    endWithout(store, run, endReason, {
      outcome: 'failed',
      modelCalls: [{ id: callIdOf(run.epoch, 1), latencyMs: 1, end: { state: 'void' } }],
    });

  const park = (run: ClaimedRun) =>
    store.write(parkRun, { ...fenceOf(run), reason: 'sub-agents', workedMs: 1, waitMs: 86_400_000 });

  return { ...people, begin, inputOf, spawn, spawnOne, answer, fail, park };
}

function depthOf(laneKey: string): number {
  return laneKey.split('@').length - 1;
}

function childLane(run: ClaimedRun, callId: string, depth: number): LaneSpec {
  const child = childIdOf({ sessionId: run.sessionId, runId: run.runId, callId });
  const key = formatSessionKey({
    kind: 'sub-agent',
    agent: 'main' as AgentId,
    depth,
    child,
    parent: run.laneKey as SessionKey,
  });
  const settings = { ...defaults, mode: 'followup', cap: 20 } as const;
  return aLane('child', { key, class: `sub-${depth}` as LaneSpec['class'], settings });
}

/** Does what the sweep of any process would do about children `inMs` from now, and returns their ids. */
export async function tend(store: Store, inMs = 0): Promise<readonly string[]> {
  const { children } = await store.read(readSweep, { now: Date.now() + inMs });
  for (const childId of children) await store.write(sweepChild, { childId });
  return children;
}
