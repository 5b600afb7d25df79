import { cleanLabel } from '../../texts/clean-untrusted.ts';
import type { InboxContent } from './json.ts';

/** The beginning of a text, on one line. */
export function oneLine(text: string): string {
  const flat = text.replace(/\s+/g, ' ').trim();
  return flat.length > 160 ? `${flat.slice(0, 159).toWellFormed()}…` : flat;
}

/** A message as the cap shortens it: its beginning, and the names of its files, of which nothing else is left. */
export function summaryLineOf({ prompt, attachments }: Pick<InboxContent, 'prompt' | 'attachments'>): string {
  const files = attachments.map(({ name, kind }) => `[attachment ${cleanLabel(name ?? kind)}, left out]`);
  return [oneLine(prompt), ...files].filter((part) => part !== '').join(' ');
}
