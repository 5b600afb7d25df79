/**
 * Bounds and cleans the content of messages other than written words: lines that describe it, and the names of fields
 * that this version doesn't know. Both come from outside and are only ever data.
 */
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { InboundWords } from '#contracts/envelope.ts';
import { cleanLabel } from '../texts/clean-untrusted.ts';

/** Limits on the lines of one message: a poll, an embed or a checklist has far less. In UTF-16 code units. */
const maxLines = 200;
const maxLineLength = 4096;
const maxLinesLength = 32_768;

/** Returns the lines that describe a message's other content, without empty ones. */
export function describedLines({ described = [] }: InboundWords): readonly string[] {
  const lines: string[] = [];
  let room = maxLinesLength;
  for (const line of described.slice(0, maxLines)) {
    if (line.trim() === '' || room === 0) continue;
    const kept = line.slice(0, Math.min(maxLineLength, room)).toWellFormed();
    lines.push(kept);
    room -= kept.length;
  }
  return lines;
}

/** Limits on the names of fields that people, the model and `why` are told. */
const maxFields = 8;
const maxFieldLength = 40;

type Content = InboundWords & { readonly attachments?: readonly AttachmentRef[] };

/** Says whether the message has any content that Parley can read. */
export function hasContent(content: Content): boolean {
  if (content.text.trim() !== '' || (content.attachments ?? []).length > 0) return true;
  return describedLines(content).length > 0;
}

/** Returns the unknown fields of a message that has no other content; empty for any other message. */
export function unreadFields(content: Content): readonly string[] {
  const { unknownFields = [] } = content;
  if (unknownFields.length === 0 || hasContent(content)) return [];
  const names = unknownFields
    .slice(0, maxFields)
    .map((name) => cleanLabel(name.slice(0, 1000)).slice(0, maxFieldLength).toWellFormed());
  const named = [...new Set(names.filter((name) => name !== ''))];
  return named.length === 0 ? ['?'] : named;
}

/** Returns the words as they are read, with their formatting. */
export function readableWords({ text, shown = text }: InboundWords): string {
  return shown;
}

/** Returns the content as people see it in lists and on the page. */
export function shownText(content: Content): string {
  const fields = unreadFields(content);
  if (fields.length > 0) return `[${fields.join(', ')}]`;
  return [readableWords(content), ...describedLines(content)].filter((line) => line !== '').join('\n');
}
