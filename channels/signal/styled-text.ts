/**
 * Text with spans → the markers of `text_mode: styled`. The server's parser has no rules about the characters next to a
 * marker: it only closes the marker opened last, swallows one that never closes, and a backslash makes the *whole*
 * marker after it literal. So every literal marker character is escaped, and no marker may follow a backslash, a star
 * or a bar: `\***x**` would be read as a literal `**` and a star. Bold and italic never meet, because release 0.100 and
 * later ones read `***` differently.
 */
import { cleanText } from '#channel-kit/clean-text.ts';
import { fitSpans } from '#channel-kit/nested-spans.ts';
import type { FormattedText, Span } from '#contracts/formatted-text.ts';

export type StyledText = { readonly message: string; readonly textMode: 'normal' | 'styled' };

const bold = 1;
const italic = 2;
/** From the outside in. */
const styles = [
  { bit: 8, marker: '||' },
  { bit: 4, marker: '~' },
  { bit: bold, marker: '**' },
  { bit: italic, marker: '*' },
  { bit: 16, marker: '`' },
] as const;

type Style = (typeof styles)[number];

/** Signal has no underlining; links and quotes have been turned into text before this. */
const bits: Partial<Record<Span['kind'], number>> = {
  bold,
  italic,
  strikethrough: 4,
  spoiler: 8,
  code: 16,
  'code-block': 16,
};

/** More spans than this are left out, though not their text: every character of a span is marked. */
const maxSpans = 300;

export function toStyledText(formatted: FormattedText): StyledText {
  const { text, spans } = inWords(wellFormed(formatted));
  const masks = masksOf(text, spans);
  if (masks.every((mask) => mask === 0)) return { message: text, textMode: 'normal' };
  return { message: withMarkers(text, masks), textMode: 'styled' };
}

function wellFormed({ text, spans }: FormattedText): FormattedText {
  return { text: cleanText(text), spans: fitSpans(spans, maxSpans) };
}

type Insertion = { readonly at: number; readonly text: string };

/** Writes elements that have no style here as text: a link's target follows its label, quoted lines start with `> `. */
function inWords({ text, spans }: FormattedText): FormattedText {
  const insertions = spans.flatMap((span) => insertionsOf(text, span)).sort((a, b) => a.at - b.at);
  if (insertions.length === 0) return { text, spans };
  const lengthBefore = lengthsBefore(insertions);
  const moved = spans.map((span): Span => {
    const start = span.start + lengthBefore(span.start, true);
    const end = span.start + span.length + lengthBefore(span.start + span.length, false);
    return { ...span, start, length: Math.max(0, end - start) };
  });
  let written = '';
  let index = 0;
  for (const { at, text: added } of insertions) {
    written += text.slice(index, at) + added;
    index = at;
  }
  return { text: written + text.slice(index), spans: moved };
}

/** Returns how much is inserted before an index, or at it if a span starts there. */
function lengthsBefore(insertions: readonly Insertion[]): (index: number, isStart: boolean) => number {
  const sums = [0];
  for (const { text } of insertions) sums.push((sums.at(-1) ?? 0) + text.length);
  return (index, isStart) => {
    let low = 0;
    let high = insertions.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const at = insertions[middle]?.at ?? 0;
      if (at < index || (isStart && at === index)) low = middle + 1;
      else high = middle;
    }
    return sums[low] ?? 0;
  };
}

function insertionsOf(text: string, span: Span): readonly Insertion[] {
  const start = Math.max(0, span.start);
  const end = Math.min(text.length, span.start + span.length);
  if (end <= start) return [];
  if (span.kind === 'link') {
    const label = text.slice(start, end);
    const shown = span.url.replace(/^(?:https?:\/\/|mailto:|tel:)/i, '').replace(/\/$/, '');
    const isShown = label.includes(shown);
    return isShown || !/^(?:https?|mailto|tel):/i.test(span.url) ? [] : [{ at: end, text: ` (${span.url})` }];
  }
  if (span.kind !== 'quote') return [];
  const lines: Insertion[] = [{ at: start, text: '> ' }];
  for (let at = text.indexOf('\n', start); at !== -1 && at + 1 < end; at = text.indexOf('\n', at + 1))
    lines.push({ at: at + 1, text: '> ' });
  return lines;
}

/** Returns the styles of each code unit as bits, repaired so that their markers can be read back. */
function masksOf(text: string, spans: readonly Span[]): Uint8Array {
  const masks = new Uint8Array(text.length);
  for (const { kind, start, length } of spans) {
    const bit = bits[kind] ?? 0;
    const end = Math.min(text.length, start + length);
    for (let index = Math.max(0, start); index < end; index += 1) masks[index] = at(masks, index) | bit;
  }
  for (let index = 0; index < text.length; index += 1) {
    if (isLowSurrogate(text, index)) masks[index] = at(masks, index - 1);
    if (at(masks, index) & bold) masks[index] = at(masks, index) & ~italic;
  }
  do keepMarkersReadable(text, masks);
  while (dropItalicBesideBold(masks));
  return masks;
}

/** Gives a backslash, star or bar the styles of what follows it, so that no marker follows it. */
function keepMarkersReadable(text: string, masks: Uint8Array): void {
  for (let index = text.length - 1; index >= 0; index -= 1) {
    const sign = text[index];
    if (sign === '\\' || sign === '*' || sign === '|') masks[index] = at(masks, index + 1);
  }
}

/** Returns true if there was anything to drop. */
function dropItalicBesideBold(masks: Uint8Array): boolean {
  let isChanged = false;
  for (let start = 0; start < masks.length; start += 1) {
    if ((at(masks, start) & italic) === 0) continue;
    let end = start;
    while (at(masks, end) & italic) end += 1;
    if ((at(masks, start - 1) | at(masks, end)) & bold) {
      for (let index = start; index < end; index += 1) masks[index] = at(masks, index) & ~italic;
      isChanged = true;
    }
    start = end;
  }
  return isChanged;
}

function withMarkers(text: string, masks: Uint8Array): string {
  const open: Style[] = [];
  let written = '';
  for (let index = 0; index <= text.length; index += 1) {
    const mask = at(masks, index);
    while (open.some(({ bit }) => (mask & bit) === 0)) written += open.pop()?.marker ?? '';
    for (const style of styles) {
      if ((mask & style.bit) === 0 || open.includes(style)) continue;
      open.push(style);
      written += style.marker;
    }
    const sign = text[index] ?? '';
    written += /[*~`|]/.test(sign) ? `\\${sign}` : sign;
  }
  return written;
}

/** Returns 0 outside the text. */
function at(masks: Uint8Array, index: number): number {
  return masks[index] ?? 0;
}

function isLowSurrogate(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  const before = text.charCodeAt(index - 1);
  return unit >= 0xdc00 && unit < 0xe000 && before >= 0xd800 && before < 0xdc00;
}
