import { cleanText } from '#channel-kit/clean-text.ts';
import { maxTextLength, tooLongText } from '#channel-kit/client-frames.ts';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import { atConsole } from '../commands/pair.ts';
import { describeItemChange, itemLine } from '../commands/queue.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { stripText } from '../logging/redaction.ts';
import { changeQueuedItem, type ItemOrder } from '../server/change-queued-item.ts';
import { readQueuedItems } from '../store/reads/read-waiting-items.ts';
import { textsFor } from '../texts/chat-texts.ts';
import type { CommandOutput } from './print.ts';
import { configForReading } from './readable-config.ts';
import { withStore } from './with-store.ts';

/** How many waiting messages a list shows. */
const listed = 500;

/** Lists the waiting messages of all conversations. */
export async function listQueue(): Promise<CommandOutput> {
  const config = configForReading();
  const items = await withStore((store) => store.read(readQueuedItems, { limit: listed }), config);
  const texts = textsFor(config.language, config.texts);
  const lines = items.map((item) => {
    const { id, laneKey, position, mode } = item;
    return `${id}  ${laneKey}  position ${position}, ${mode}  ${itemLine(item, texts)}`;
  });
  return { result: items, lines: lines.length === 0 ? ['Nothing is waiting.'] : lines };
}

/** Cancels a message, or moves it to the front of its conversation. `id`: its id or the beginning of it. */
export function changeWaiting(verb: 'cancel' | 'promote', id: string): Promise<CommandOutput> {
  return change(id, () => ({ verb }));
}

/** Rewords a message, which keeps its sender and their authority. */
export async function rewordWaiting(id: string, text: string): Promise<CommandOutput> {
  const words = cleanText(text).trim();
  if (words === '') throw new ParleyError('invalid_input', 'The new text is empty.');
  if (words.length > maxTextLength) throw new ParleyError('invalid_input', tooLongText);
  return change(id, ({ timeZone }) => ({ verb: 'edit', text: words, timeZone: timeZone ?? localZone() }));
}

function localZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Applies a change. Within a second, a running gateway continues the lane and notifies a cancelled item's sender. */
async function change(id: string, orderFor: (config: Config) => ItemOrder): Promise<CommandOutput> {
  const config = loadConfig();
  const order = orderFor(config);
  const item = await withStore((store) => changeQueuedItem(store, { id, order, ref: atConsole }), config);
  if (item.kind !== 'found') {
    const why = item.kind === 'none' ? "isn't a waiting message" : 'matches several waiting messages';
    throw new ParleyError('invalid_input', `${stripText(id)} ${why}. See: ${parleyCommand} queue list`);
  }
  const { id: itemId, laneKey, number, changed } = item;
  const { verb } = order;
  const text = describeItemChange({ verb, number, changed }, textsFor(config.language, config.texts));
  if (changed.kind !== 'done' && changed.kind !== 'steered')
    throw new ParleyError('invalid_input', stripText(text));
  const what = changed.kind === 'done' ? { excerpt: changed.excerpt } : { isCorrection: true };
  return { result: { id: itemId, laneKey, number, ...what }, lines: [text] };
}
