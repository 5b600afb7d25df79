import type { Tx } from '../base/command.ts';
import type { InboxContent } from '../base/json.ts';

/** Returns the content of an item that Parley itself puts into a lane. `prompt`: the text as the model reads it. */
export function innerContent(tx: Tx, text: string, prompt = text): InboxContent {
  return { text, prompt, sender: { id: '', name: '' }, sentAt: tx.now, attachments: [] };
}
