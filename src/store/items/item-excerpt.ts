import { oneLine } from '../intake/make-room.ts';
import { json } from '../json.ts';

/** The beginning of a message as it reads now, on one line; '' for one that is only files. */
export function excerptOf({ content }: { readonly content: string }): string {
  return oneLine(json.content(content).text);
}
