import type { Authority } from '#contracts/outcome.ts';
import type { TaskMode } from '#contracts/task.ts';
import type { StoreCommand } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { type LaneSpec, newRowId } from '../base/keys.ts';
import { excerptOf } from '../base/one-line.ts';
import { innerContent } from '../children/child.ts';
import { enqueueItem } from '../items/enqueue-item.ts';
import { type ClaimTerms, claimDue } from '../lanes/claim-due.ts';
import type { ClaimedRun } from '../lanes/claim-lane.ts';
import { lockLane, makeLane } from '../rows/lane.ts';
import { insertTask, readTask, type Task, taskItemsOf } from '../tasks/task.ts';
import { taskPrompt } from '../tasks/task-texts.ts';

/** A task message, and how to begin it. */
export type AcceptTaskInput = {
  /** Hash of what makes the message unique: its agent, its ids, and the program if it has a token of its own. */
  readonly id: string;
  /** Who sent it. */
  readonly caller: string;
  readonly authority: Authority;
  readonly head: {
    readonly taskId: string;
    readonly subtaskId: string;
    readonly from: string;
    readonly mode?: TaskMode;
  };
  readonly body: string;
  /** A lane of its own. */
  readonly lane: LaneSpec;
  readonly claims?: ClaimTerms;
};

/** Fate of a task message. */
export type AcceptTaskResult =
  /** `known`: the same message came before, and nothing has changed. */
  | {
      readonly kind: 'accepted' | 'known';
      readonly effects: Effects;
      /** Runs claimed for the holder: it must execute them now. */
      readonly runs: readonly ClaimedRun[];
    }
  /** The ids belong to another message. */
  | { readonly kind: 'reused' };

/**
 * Stores a task that comes as a message, with the item that begins it: one commit. Safe to repeat: its id decides
 * whether it came before, whatever has become of it since.
 */
export const acceptTask: StoreCommand<AcceptTaskInput, AcceptTaskResult> = {
  name: 'acceptTask',
  run: async (tx, input) => {
    const { id, caller, authority, body, claims } = input;
    const lane = (await lockLane(tx, input.lane.key)) ?? (await makeLane(tx, input.lane));
    // Read under the lock: another process may have stored the same message just now.
    const known = await readTask(tx, id);
    if (known) return isSame(known, input) ? { kind: 'known', ...nothing() } : { kind: 'reused' };
    const runId = newRowId();
    const head = JSON.stringify(input.head);
    const { mode = 'direct' } = input.head;
    await insertTask(tx, {
      ...{ id, caller, head, mode, authority, title: excerptOf(body), instructions: body },
      ...{ sessionId: lane.sessionId, laneKey: lane.key, agentId: lane.agentId, treeId: runId, runId },
      ...{ parentTaskId: null, parentSubtaskId: null, callId: null, route: null, role: null },
      ...{ state: 'pending', isUnsettled: 0 },
    });
    const effects = noEffects();
    const sourceKey = `${taskItemsOf(id)}main`;
    const item = { id: newRowId(), source: 'task', sourceKey, reach: 'alone', target: 'record' } as const;
    const content = innerContent(tx, body, taskPrompt(input.head, body));
    await enqueueItem(tx, lane, { ...item, authority, reservedRunId: runId, content }, effects);
    effects.tasks.push({ id, laneKey: lane.key, isUnsettled: false });
    return { kind: 'accepted', runs: claims ? await claimDue(tx, claims, effects) : [], effects };
  },
};

function nothing(): { readonly effects: Effects; readonly runs: readonly ClaimedRun[] } {
  return { effects: noEffects(), runs: [] };
}

function isSame({ head, instructions }: Task, input: AcceptTaskInput): boolean {
  return head === JSON.stringify(input.head) && instructions === input.body;
}
