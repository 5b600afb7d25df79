import type { AttachmentRef } from '#contracts/attachment.ts';
import { cleanLabel } from '../../texts/untrusted-text.ts';
import type { InboxContent } from './json.ts';

/** Returns the beginning of a text, on one line of at most `longest` characters. */
export function oneLine(text: string, longest = 160): string {
  const flat = text.replace(/\s+/g, ' ').trim();
  return flat.length > longest ? `${flat.slice(0, longest - 1).toWellFormed()}…` : flat;
}

/** Returns the beginning of a text, short enough for a list of many. */
export function excerptOf(text: string): string {
  return oneLine(text, 60);
}

/** Returns a message as the cap shortens it: its beginning, and the names of its files, which are dropped. */
export function summaryLineOf({ prompt, attachments }: Pick<InboxContent, 'prompt' | 'attachments'>): string {
  const files = attachments.map(({ name, kind }) => `[attachment ${cleanLabel(name ?? kind)}, left out]`);
  return [oneLine(prompt), ...files].filter((part) => part !== '').join(' ');
}

const fileKinds = {
  image: 'picture',
  audio: 'audio file',
  voice: 'voice message',
  video: 'video',
  file: 'file',
};

/** Names a file that isn't shown, on a line of its own. */
export function fileLine({ kind, name = '' }: AttachmentRef): string {
  return `[${[fileKinds[kind], cleanLabel(name)].join(' ').trim()}]`;
}
