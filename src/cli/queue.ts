import type { z } from 'zod';
import { itemLine } from '../commands/queue.ts';
import * as outbox from '../operations/outbox.ts';
import * as queue from '../operations/queue.ts';
import { textsFor } from '../texts/chat-texts.ts';
import { callOperation } from './call-operation.ts';
import type { CommandOutput } from './print.ts';
import { configForReading } from './readable-config.ts';

/** Lists the waiting messages of all conversations. */
export async function listQueue(): Promise<CommandOutput> {
  const config = configForReading();
  const { items } = await callOperation(queue.listQueue, {}, config);
  const texts = textsFor(config.language, config.texts);
  const lines = items.map((item) => {
    const { id, laneKey, position, mode } = item;
    return `${id}  ${laneKey}  position ${position}, ${mode}  ${itemLine(item, texts)}`;
  });
  return { result: items, lines: lines.length === 0 ? ['Nothing is waiting.'] : lines };
}

/** Cancels a message. `id`: its id or the beginning of it. */
export const cancelWaiting = async (id: string) => show(await callOperation(queue.cancelQueued, { id }));
/** Moves a message to the front of its conversation. */
export const promoteWaiting = async (id: string) => show(await callOperation(queue.promoteQueued, { id }));
/** Rewords a message, which keeps its sender and their authority. */
export const rewordWaiting = async (id: string, text: string) =>
  show(await callOperation(queue.editQueued, { id, text }));

function show({ text, ...item }: z.output<typeof queue.cancelQueued.answer>): CommandOutput {
  const { excerpt } = item;
  return { result: excerpt === undefined ? { ...item, isCorrection: true } : item, lines: [text] };
}

/** Lists undelivered parts. */
export async function listUndelivered(): Promise<CommandOutput> {
  const { parts } = await callOperation(outbox.listOutbox, {});
  return { result: parts, lines: parts.length === 0 ? ['No undelivered messages.'] : parts.map(lineOf) };
}

type Part = z.output<typeof outbox.listOutbox.answer>['parts'][number];

function lineOf({ key, state, conversation, attempts, problem, excerpt }: Part): string {
  const reason = problem === undefined ? '' : ` (${problem})`;
  const tries = attempts === 1 ? '1 attempt' : `${attempts} attempts`;
  return `${key}  ${state}${reason}  ${conversation}  ${tries}  “${excerpt}”`;
}

export async function resendPart(key: string): Promise<CommandOutput> {
  await callOperation(outbox.resendPart, { key });
  return { result: { key }, lines: [`${key} will be sent again.`] };
}

export async function giveUpPart(key: string): Promise<CommandOutput> {
  await callOperation(outbox.giveUpPart, { key });
  return { result: { key }, lines: [`${key} has been dropped.`] };
}
