import type { MessagePart } from '#contracts/message.ts';
import type { Tx } from '../base/command.ts';
import { changeRow, findRow, plus } from '../base/row-by-key.ts';
import {
  chargeCost,
  closeModelCalls,
  type ModelCallEnd,
  type OpenCalls,
  type Spent,
} from '../money/model-calls.ts';
import { appendMessage, type Charge } from '../rows/append-transcript.ts';

/** An assistant message as it is stored; later images replace earlier ones. */
export type AssistantImage = {
  readonly id: string;
  readonly sessionId: string;
  readonly parts: readonly MessagePart[];
  readonly model: string | undefined;
};

type AssistantRowInput = {
  readonly message: AssistantImage;
  readonly runId: string;
  readonly isFinished: boolean;
  /** The model calls that wrote it, once they are over. */
  readonly calls?: readonly ModelCallEnd[];
  /** Both as the caller read them under its lane's lock. */
  readonly before?: { readonly known: StoredImage | undefined; readonly open: OpenCalls };
};

/**
 * Writes the current state of an assistant message and the cost of its calls. Returns false if the message was
 * already finished, which means that this is a repeat.
 */
export async function writeAssistant(
  tx: Tx,
  { message, runId, isFinished, calls = [], before }: AssistantRowInput,
): Promise<boolean> {
  const { id, sessionId, parts, model } = message;
  const { known, open } = before ?? {
    known: await findRow(tx, 'transcript', id, ['isFinished']),
    open: undefined,
  };
  if (known?.isFinished === 1) return false;
  const spent = await closeModelCalls(tx, runId, calls, open);
  const charge = chargeOf(spent);
  if (!charge) await chargeCost(tx, sessionId, spent);
  if (!known) {
    await appendMessage(tx, { id, sessionId, role: 'assistant', parts, model, runId, isFinished, charge });
    return true;
  }
  if (charge) {
    const { cost, promptTokens, completionTokens } = charge;
    await changeRow(tx, 'sessions', sessionId, { cost: plus(cost), promptTokens, completionTokens });
  }
  const image = { parts: JSON.stringify(parts), isFinished: isFinished ? 1 : 0, model };
  await changeRow(tx, 'transcript', id, { ...image, updatedAt: tx.now });
  return true;
}

/** Returns undefined if none of its calls were counted. */
function chargeOf({ cost, usage }: Spent): Charge | undefined {
  return (
    usage && {
      cost,
      promptTokens: usage.inputTokens + usage.cacheWriteTokens,
      completionTokens: usage.outputTokens + usage.cacheReadTokens,
    }
  );
}

/** An earlier image of a message. */
export type StoredImage = { readonly isFinished: number };
