import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import { atConsole } from '../commands/pair.ts';
import { describeItemChange, itemLine } from '../commands/queue.ts';
import { loadConfig } from '../config/load-config.ts';
import { stripText } from '../logging/redaction.ts';
import { changeQueuedItem } from '../server/change-queued-item.ts';
import { readQueuedItems } from '../store/reads/read-waiting-items.ts';
import { noticesFor } from '../texts/notices.ts';
import type { CommandOutput } from './print.ts';
import { withStore } from './with-store.ts';

/** Waiting messages that a list shows. */
const listed = 500;

/** Lists what waits in all conversations. */
export async function listQueue(): Promise<CommandOutput> {
  const config = loadConfig();
  const items = await withStore((store) => store.read(readQueuedItems, { limit: listed }), config);
  const texts = noticesFor(config.language, config.texts);
  const lines = items.map((item) => {
    const { id, laneKey, position, mode } = item;
    return `${id}  ${laneKey}  position ${position}, ${mode}  ${itemLine(item, texts)}`;
  });
  return { result: items, lines: lines.length === 0 ? ['Nothing is waiting.'] : lines };
}

/** Within a second, a running gateway continues with what is due and tells the sender of a cancelled message. */
export async function changeQueued(verb: 'cancel' | 'promote', id: string): Promise<CommandOutput> {
  const config = loadConfig();
  const item = await withStore((store) => changeQueuedItem(store, { verb, id, ref: atConsole }), config);
  if (item.kind !== 'found') {
    const why = item.kind === 'none' ? "isn't a waiting message" : 'matches several waiting messages';
    throw new ParleyError('invalid_input', `${stripText(id)} ${why}. See: ${parleyCommand} queue list`);
  }
  const { id: itemId, laneKey, number, changed } = item;
  const text = describeItemChange({ verb, number, changed }, noticesFor(config.language, config.texts));
  if (changed.kind !== 'done') throw new ParleyError('invalid_input', stripText(text));
  const { excerpt } = changed;
  return { result: { id: itemId, laneKey, number, excerpt }, lines: [text] };
}
