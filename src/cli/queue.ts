import type { z } from 'zod';
import { itemLine } from '../commands/queue.ts';
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
