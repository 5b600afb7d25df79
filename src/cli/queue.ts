import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import { atConsole } from '../commands/pair.ts';
import { describeItemChange, itemLine } from '../commands/queue.ts';
import { loadConfig } from '../config/load-config.ts';
import { stripText } from '../logging/redaction.ts';
import type { Actor } from '../store/items/actor.ts';
import { cancelItem } from '../store/items/cancel-item.ts';
import { promoteItem } from '../store/items/promote-item.ts';
import { findQueuedItem, readQueuedItems } from '../store/reads/read-waiting-items.ts';
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

const steps = { cancel: cancelItem, promote: promoteItem } as const;
/** The operator may change everything that waits. */
const actor: Actor = { ref: atConsole, people: [], mayChangeAny: true, mayPromoteOwn: true };

/** Within a second, a running gateway continues with what is due and tells the sender of a cancelled message. */
export async function changeQueued(verb: keyof typeof steps, id: string): Promise<CommandOutput> {
  const config = loadConfig();
  const { item, changed } = await withStore(async (store) => {
    const found = await store.read(findQueuedItem, { id: id.toLowerCase() });
    if (found.kind !== 'found') {
      const why = found.kind === 'none' ? "isn't a waiting message" : 'matches several waiting messages';
      throw new ParleyError('invalid_input', `${stripText(id)} ${why}. See: ${parleyCommand} queue list`);
    }
    const { laneKey, number } = found;
    return { item: found, ...(await store.write(steps[verb], { laneKey, number, actor })) };
  }, config);
  const { id: itemId, laneKey, number } = item;
  const text = describeItemChange({ verb, number, changed }, noticesFor(config.language, config.texts));
  if (changed.kind !== 'done') throw new ParleyError('invalid_input', stripText(text));
  const { excerpt } = changed;
  return { result: { id: itemId, laneKey, number, excerpt }, lines: [text] };
}
