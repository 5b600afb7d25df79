import { json } from '../base/json.ts';
import { oneLine } from '../base/one-line.ts';

/** Returns the beginning of a message's current text, on one line; '' for a message that is only files. */
export function excerptOf({ content }: { readonly content: string }): string {
  return oneLine(json.content(content).text);
}
