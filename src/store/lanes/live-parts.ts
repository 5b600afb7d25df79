/** Stores parts of an answer that are sent while it is written. They stay, whatever becomes of the answer. */

import type { Part } from '#contracts/part.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { json } from '../base/json.ts';
import { changeRow } from '../base/row-access.ts';
import { amendOutcome } from '../delivery/end-part.ts';
import { insertPart } from '../delivery/part.ts';
import { lockLaneAt, takeSeq } from '../rows/lane.ts';
import type { RunFence } from '../rows/run.ts';
import { type AssistantImage, writeAssistant } from './commit-turn.ts';
import { readSteered } from './steer.ts';

/** A block in the outbox; `source`: its piece of the text. */
export type StoredBlock = { readonly key: string; readonly source: string };

export type BlockInput = RunFence & {
  /** The message so far. */
  readonly message: AssistantImage;
  readonly parts: readonly (Part & { readonly key: string })[];
};

/**
 * Stores blocks with the message so far, in one transaction. Returns undefined, storing nothing, if the run has ended or
 * was asked to stop. Safe to repeat: a key is stored once.
 */
export const storeBlocks: StoreCommand<BlockInput, Effects | undefined> = {
  name: 'storeBlocks',
  run: async (tx, { laneKey, epoch, runId, message, parts }) => {
    const lane = await lockLaneAt(tx, laneKey, epoch);
    if (lane.runId !== runId) return undefined;
    const { cancelReason } = await readSteered(tx, runId);
    if (cancelReason !== undefined) return undefined;
    await writeAssistant(tx, { message, runId, isFinished: false });
    const effects = noEffects();
    for (const part of parts) {
      const timeline = { laneKey, seq: await takeSeq(tx, laneKey) };
      effects.deliveries.push(await insertPart(tx, { ...part, runId, timeline }));
    }
    return effects;
  },
};

const named = ':block:';

/** Returns the key of a message's block. A later holder of the run writes another message. */
export function blockKeyOf({ runId }: Pick<RunFence, 'runId'>, messageId: string, index: number): string {
  return `${runId}${named}${messageId}:${index}`;
}

/**
 * Reads the blocks that were sent of the answer that the run has begun and not finished, in their order. Blocks beside
 * tool calls belong to messages that are complete.
 */
export const readOpenBlocks: StoreQuery<{ readonly runId: string }, readonly StoredBlock[]> = {
  query: 'readOpenBlocks',
  run: async (tx, { runId }) => {
    const rows = await tx.db
      .selectFrom('outbox')
      .select(['key', 'content'])
      .where('runId', '=', runId)
      .where('purpose', '=', 'reply')
      .where('answer', 'is', null)
      .orderBy('place')
      .execute();
    const calls = await tx.db
      .selectFrom('toolCalls')
      .select('messageId')
      .distinct()
      .where('runId', '=', runId)
      .execute();
    const complete = calls.map(({ messageId }) => `${runId}${named}${messageId}:`);
    return rows.flatMap(({ key, content }) => {
      const stored = json.outbound(content);
      const source = stored.kind === 'text' ? stored.source : undefined;
      return source === undefined || complete.some((prefix) => key.startsWith(prefix))
        ? []
        : [{ key, source }];
    });
  },
};

/**
 * Makes the blocks part of the answer that they begin: from here on its outcome depends on them, too. The caller has
 * locked the lane and recorded which items the answer answers.
 */
export async function joinBlocks(
  tx: Tx,
  {
    runId,
    answer,
    blocks,
  }: { readonly runId: string; readonly answer: string; readonly blocks: readonly string[] },
): Promise<void> {
  for (const key of blocks) await changeRow(tx, 'outbox', key, { answer });
  if (blocks.length > 0) await amendOutcome(tx, { runId, answer });
}
