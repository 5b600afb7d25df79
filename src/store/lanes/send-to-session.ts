import { type Authority, lowestAuthority } from '#contracts/outcome.ts';
import { withoutQuote } from '#contracts/route.ts';
import { readCause } from '../approvals/call-approval.ts';
import type { StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { json } from '../base/json.ts';
import { newRowId } from '../base/keys.ts';
import { readRow } from '../base/row-access.ts';
import { isChildLane } from '../children/child.ts';
import { enqueueItem } from '../items/enqueue-item.ts';
import { lockLane, lockLaneAt, lockLanes } from '../rows/lane.ts';
import { assertRunActive, type RunFence } from '../rows/run.ts';

/** A message from a run to another conversation. */
export type SessionMessage = RunFence & {
  readonly callId: string;
  /** The session key of the other conversation. */
  readonly toLane: string;
  readonly text: string;
};

/** Result of a message to another conversation; `refused` stored nothing. */
export type SessionSend =
  | { readonly kind: 'accepted'; readonly effects: Effects }
  | {
      readonly kind: 'refused';
      readonly reason: 'itself' | 'sub-agent' | 'unknown' | 'nobody-wrote' | 'too-far' | 'too-many';
    };

/** How often a message may be passed on: a run that the last of them has begun sends no further. */
export const maxHops = 3;
/** How many such messages may wait in one conversation. */
export const maxWaiting = 20;

/**
 * Puts the text into the lane of another conversation, where it is answered. It gets the rights of the sending run, but
 * never more than the person who wrote there last. Safe to repeat: run and call name the item, so a repeat finds it. Throws for
 * a run that was asked to stop or has ended.
 */
export const sendToSession: StoreCommand<SessionMessage, SessionSend> = {
  name: 'sendToSession',
  run: async (tx, input) => {
    const { laneKey, runId, epoch, callId, toLane, text } = input;
    if (toLane === laneKey) return { kind: 'refused', reason: 'itself' };
    if (isChildLane(toLane)) return { kind: 'refused', reason: 'sub-agent' };
    await lockLanes(tx, [toLane, laneKey]);
    await lockLaneAt(tx, laneKey, epoch);
    const effects = noEffects();
    const sourceKey = `session:${runId}:${callId}`;
    if (await isStored(tx, sourceKey)) return { kind: 'accepted', effects };
    await assertRunActive(tx, runId);
    if (!(await lockLane(tx, toLane))) return { kind: 'refused', reason: 'unknown' };
    const last = await readLastWritten(tx, toLane);
    if (!last) return { kind: 'refused', reason: 'nobody-wrote' };
    const { askers, hops } = await readCause(tx, runId);
    if (hops >= maxHops) return { kind: 'refused', reason: 'too-far' };
    if ((await countWaiting(tx, toLane)) >= maxWaiting) return { kind: 'refused', reason: 'too-many' };
    const { authority } = await readRow(tx, 'runs', runId, ['authority']);
    const item = {
      id: newRowId(),
      source: 'session',
      sourceKey,
      // A message of an agent interrupts nobody's run.
      reach: 'always',
      target: withoutQuote(json.route(last.route)),
      // The store wrote both.
      authority: lowestAuthority(authority as Authority, last.authority as Authority),
      content: {
        text,
        prompt: `[Sent here by your run in the conversation ${laneKey}, not by a person. Your answer goes to this conversation.]\n${text}`,
        sender: { id: laneKey, name: 'another conversation' },
        sentAt: tx.now,
        attachments: [],
        relay: { hops: hops + 1, askers },
      },
    } as const;
    await enqueueItem(tx, { key: toLane }, item, effects);
    return { kind: 'accepted', effects };
  },
};

async function isStored(tx: Tx, sourceKey: string): Promise<boolean> {
  const row = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('sourceKey', '=', sourceKey)
    .executeTakeFirst();
  return row !== undefined;
}

/** Reads where a person last wrote to the lane, and with which rights. */
function readLastWritten(tx: Tx, laneKey: string) {
  return tx.db
    .selectFrom('inbox')
    .select(['route', 'authority'])
    .where('laneKey', '=', laneKey)
    .where('source', '=', 'platform')
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst();
}

async function countWaiting(tx: Tx, laneKey: string): Promise<number> {
  const rows = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('laneKey', '=', laneKey)
    .where('state', '=', 'waiting')
    .where('source', '=', 'session')
    .limit(maxWaiting)
    .execute();
  return rows.length;
}
