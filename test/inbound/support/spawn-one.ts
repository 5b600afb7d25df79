import type { Store } from '../../../src/store/base/command.ts';
import { childIdOf } from '../../../src/store/children/child.ts';
import { spawnChild } from '../../../src/store/children/spawn-child.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { aLane } from '../../store/builders.ts';

/** Spawns a sub-agent named research from the run. */
export async function spawnOne(store: Store, { laneKey, epoch, runId, sessionId }: ClaimedRun) {
  const id = childIdOf({ sessionId, runId, callId: 'call' });
  const spawned = await store.write(spawnChild, {
    ...{ laneKey, epoch, runId, callId: 'call', task: 'look it up', agentId: 'main', label: 'research' },
    ...{ mode: 'announce', context: 'isolated' },
    role: { depth: 1, profile: 'task', deniedTools: [] },
    limits: { depth: 1, children: 5, nodes: 20, lifetime: 200, treeMs: 3_600_000 },
    lane: { ...aLane('child'), key: `agent:main:sub:1:${id}@${laneKey}`, class: 'sub-1' },
  });
  if (spawned.kind !== 'spawned') throw new Error(spawned.kind);
  return { id, childLane: spawned.child.laneKey };
}
