/** Shows with a reaction on a message that it is being answered. A refused reaction never matters. */

import type { MessageId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { json } from '../base/json.ts';
import { findRow } from '../base/row-access.ts';
import { insertPart, removePart } from '../delivery/part.ts';
import { acknowledgementKeyOf } from '../delivery/record-send.ts';
import { lockLaneAt } from '../rows/lane.ts';
import type { RunFence } from '../rows/run.ts';

/** The message that is answered, on its route, and the reaction to it. */
export type AcknowledgementInput = RunFence & {
  readonly route: ReplyRoute;
  readonly messageId: MessageId;
  readonly emoji: string;
};

/** Sets the reaction for a run, once; not if the run has ended. Safe to repeat by its key. */
export const acknowledge: StoreCommand<AcknowledgementInput, Effects> = {
  name: 'acknowledge',
  run: async (tx, { laneKey, epoch, runId, route, messageId, emoji }) => {
    const lane = await lockLaneAt(tx, laneKey, epoch);
    const effects = noEffects();
    if (lane.runId !== runId) return effects;
    const content = { kind: 'reaction', messageId, emoji } as const;
    const part = { key: acknowledgementKeyOf(runId), route, content, purpose: 'notice', runId } as const;
    effects.deliveries.push(await insertPart(tx, part));
    return effects;
  },
};

/** Takes the run's reaction back, if it was set. The caller has locked the lane. Safe to repeat by its key. */
export async function removeAcknowledgement(tx: Tx, runId: string, effects: Effects): Promise<void> {
  const key = acknowledgementKeyOf(runId);
  const row = await findRow(tx, 'outbox', key, ['route', 'content', 'state', 'sendingAt']);
  if (row === undefined) return;
  // Nothing has been sent, so there is nothing to take back.
  if (row.state === 'pending' && row.sendingAt === null) return removePart(tx, key);
  const stored = json.outbound(row.content);
  if (stored.kind !== 'reaction') return;
  const content = { ...stored, isRemoved: true } as const;
  const part = {
    key: `${key}:end`,
    route: json.route(row.route),
    content,
    purpose: 'notice',
    runId,
  } as const;
  effects.deliveries.push(await insertPart(tx, part));
}
