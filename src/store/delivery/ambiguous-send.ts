/**
 * Resolves an interrupted send: it is repeated while the platform recognises the repeat, else looked up, else it
 * becomes `unknown` and stays so unless the owner chose otherwise.
 */

import { askedWaitMs, longestWaitMs, retryAfterMs } from '#channel-kit/remote-number.ts';
import type { Found } from '#contracts/channel-abilities.ts';
import type { Tx } from '../base/command.ts';
import { readRow } from '../base/row-by-key.ts';
import { endPart, failAnswer, reschedulePart, storeReceipts } from './end-part.ts';

export type Ambiguous = {
  readonly conversationKey: string;
  readonly partKey: string;
  readonly repeatSafeMs: number;
  readonly canLookUp?: boolean;
  /** The owner has chosen to repeat sends whose result is unknown. */
  readonly resendUnknown: boolean;
};

const firstPauseMs = 1_000;
const longestPauseMs = 15_000;
/** Limits sends of a part that its platform drops every time, since it would hold up its conversation forever. */
const mostSends = 100;
/** How long after the send a lookup that fails for reasons other than an outage is given up, ms. */
const lookupPatienceMs = 600_000;

export async function settleUnknown(tx: Tx, ambiguous: Ambiguous, problem: string): Promise<void> {
  const { partKey, repeatSafeMs, canLookUp, resendUnknown } = ambiguous;
  if (repeatSafeMs > 0 || canLookUp) {
    const { attempts, sendingAt } = await sendingOf(tx, partKey);
    const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** (attempts - 1));
    return reschedulePart(tx, { partKey, dueAt: tx.now + pauseMs, problem, mayStandSince: sendingAt });
  }
  if (resendUnknown) return reschedulePart(tx, { partKey, dueAt: tx.now, problem, mayStandSince: undefined });
  return endPart(tx, { key: partKey, state: 'unknown', problem });
}

export async function settleLookup(tx: Tx, ambiguous: Ambiguous, found: Found): Promise<void> {
  const { partKey, resendUnknown } = ambiguous;
  switch (found.kind) {
    case 'candidates':
      return settleCandidates(tx, ambiguous, found.messageIds);
    case 'later': {
      const { sendingAt } = await sendingOf(tx, partKey);
      const { reason: problem, afterMs, isOutage } = found;
      if (!isOutage && tx.now - sendingAt > lookupPatienceMs)
        return endPart(tx, { key: partKey, state: 'unknown', problem });
      const dueAt = tx.now + retryAfterMs(afterMs);
      const askedMs = afterMs > longestWaitMs ? askedWaitMs(afterMs) : undefined;
      return reschedulePart(tx, { partKey, dueAt, problem, mayStandSince: sendingAt, askedMs });
    }
    case 'unknown': {
      const problem = found.reason;
      if (resendUnknown)
        return reschedulePart(tx, { partKey, dueAt: tx.now, problem, mayStandSince: undefined });
      return endPart(tx, { key: partKey, state: 'unknown', problem });
    }
    default:
      return found satisfies never;
  }
}

/** Returns the part's message, the first one that no other part made; undefined: the part never arrived. */
export async function ownOf(
  tx: Tx,
  { conversationKey, partKey }: Pick<Ambiguous, 'conversationKey' | 'partKey'>,
  messageIds: readonly string[],
): Promise<string | undefined> {
  const others = await tx.db
    .selectFrom('receipts')
    .select('messageId')
    .where('conversationKey', '=', conversationKey)
    .where('messageId', 'in', [...messageIds, ''])
    .where('partKey', '<>', partKey)
    .execute();
  const taken = new Set(others.map(({ messageId }) => messageId));
  return messageIds.find((id) => !taken.has(id));
}

async function settleCandidates(tx: Tx, part: Ambiguous, messageIds: readonly string[]): Promise<void> {
  const { conversationKey, partKey } = part;
  const own = await ownOf(tx, part, messageIds);
  if (own === undefined) {
    const problem = 'the send was cut off and had not arrived';
    const { attempts } = await sendingOf(tx, partKey);
    if (attempts >= mostSends) return failAnswer(tx, { partKey, problem });
    return reschedulePart(tx, { partKey, dueAt: tx.now, problem, mayStandSince: undefined });
  }
  await endPart(tx, { key: partKey, state: 'sent', receipts: [own] });
  await storeReceipts(tx, { conversationKey, partKey, receipts: [own] });
}

async function sendingOf(
  tx: Tx,
  key: string,
): Promise<{ readonly attempts: number; readonly sendingAt: number }> {
  const row = await readRow(tx, 'outbox', key, ['attempts', 'sendingAt']);
  return { attempts: row.attempts, sendingAt: row.sendingAt ?? tx.now };
}
