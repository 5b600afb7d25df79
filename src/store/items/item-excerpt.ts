import { json } from '../base/json.ts';
import { oneLine } from '../base/one-line.ts';

/** The beginning of a message as it reads now, on one line; '' for one that is only files. */
export function excerptOf({ content }: { readonly content: string }): string {
  return oneLine(json.content(content).text);
}
