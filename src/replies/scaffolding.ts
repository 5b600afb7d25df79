/**
 * Removes what belongs to the machinery and not to the answer: thinking, tool-call leftovers, role
 * tokens, boundary markers of untrusted data, reply tags. In code fences and code spans they stay, because
 * there the answer is about them, and so do tags that a sentence mentions.
 *
 * One pass from left to right. The output for a growing text ends where a later character could change
 * the decision, so streamed text is always a prefix of the text that is sent.
 */

import { isMentioned, mentionLength } from '../texts/mentioned-mark.ts';
import { stripControls, stripControlsStreaming } from '../texts/untrusted-text.ts';

export type StripResult = {
  readonly text: string;
  /** The last explicit reply tag: `current`, or a platform message id. */
  readonly replyTag?: string;
};

/** Elements that are removed with their content. */
const BLOCKS =
  'think|thinking|thought|thoughts|reasoning|reflection|scratchpad|antthinking|tool_call|tool_calls|tool_use|tool_result|tool_results|tool_response|tool_output|function_call|function_calls|function_result|function_results|invoke|system-reminder';
/** Elements whose tags are removed, but not their content. */
const TAGS = 'final|answer|assistant|parameter';

const OPENING = new RegExp(`<(?:\\w{1,12}:)?(${BLOCKS})(?:\\s[^<>]{0,200})?>`, 'iy');
const STRAY = new RegExp(`</?(?:\\w{1,12}:)?(?:${BLOCKS}|${TAGS})(?:\\s[^<>]{0,200})?/?>`, 'iy');
const ROLE_TOKEN = /<\|[\w ▁-]{1,40}\|>|<｜[\w ▁-]{1,40}｜>|\[\/?INST\]|<<\/?SYS>>/iy;
const BOUNDARY = /<<<(?:end )?untrusted[^<>\n]{0,200}>>>/iy;
const BRACKET_BLOCK = /\[(TOOL_CALLS?|TOOL_RESULTS?)\]/iy;
const REPLY_TAG = /\[\[\s*reply_to(_current|\s*:\s*([^\]\s]{1,128}))\s*\]\][ \t]*/iy;
const FENCE = /[ \t]{0,3}(`{3,}|~{3,})[^\n]*(?:\n|$)/y;
const TICKS = /`+/y;

/** Words between both tags of a block in a sentence that only mentions them: `<think> and </think>`. */
const BETWEEN_MENTIONED = /^\s*(?:\p{L}{1,6}|[,/…&+-]|\.{3})\s*$/u;

/** Longest unfinished text that may still become one of the above. */
const LONGEST_MARKER = 260;
const UNFINISHED_MARKER = new RegExp(
  [
    '^<{1,3}/?$',
    '^</?[\\w:-]{1,40}/?$',
    `^</?(?:\\w{1,12}:)?(?:${BLOCKS}|${TAGS})\\s[^<>]*$`,
    '^<[|｜][\\w ▁-]*[|｜]?$',
    '^<</?S?Y?S?$',
    '^<<<(?:e?n?d?| ?|end u?n?t?r?u?s?t?e?d?|u?n?t?r?u?s?t?e?d?)$',
    '^<<<(?:end )?untrusted[^<>\\n]*>{0,2}$',
    '^\\[/?I?N?S?T?$',
    '^\\[/?T?O?O?L?_?(?:CALLS?|RESULTS?|[CR]\\w{0,5})?$',
    '^\\[\\[\\s*r?e?p?l?y?_?t?o?(?:_\\w{0,7}|\\s*:\\s*[^\\]\\s]*)?\\s*\\]?$',
  ].join('|'),
  'i',
);

type Scan = {
  readonly source: string;
  readonly isFinal: boolean;
  at: number;
  out: string;
  /** Whether the output ends at the start of a line, ignoring blanks. */
  isLineBlank: boolean;
  /** The end of the output's last line. */
  lineEnd: string;
  /** The line that was read last. */
  line: Line;
  /** By the name of a block: from the end of each opening tag to the end of its block. */
  readonly blocks: Map<string, ReadonlyMap<number, number>>;
  replyTag?: string;
};

/** UTF-16 units. */
const lineEndLength = 80;

type Line = {
  readonly end: number;
  /** The end of each code span, by the start of its opening ticks. */
  readonly spans: ReadonlyMap<number, number>;
};

const noLine: Line = { end: -1, spans: new Map() };

/** Strips a complete text; an unclosed block at the start of a line removes the rest of the text. */
function stripScaffolding(text: string): StripResult {
  return strip(text, true);
}

/** Strips a text that is still growing. */
function stripScaffoldingStreaming(text: string): string {
  return strip(text, false).text;
}

function strip(source: string, isFinal: boolean): StripResult {
  if (!/[<[]/.test(source)) return { text: source };
  const scan: Scan = {
    ...{ source, isFinal, at: 0, out: '', isLineBlank: true, lineEnd: '' },
    ...{ line: noLine, blocks: new Map() },
  };
  while (scan.at < source.length) {
    if (!step(scan)) break;
  }
  return scan.replyTag === undefined ? { text: scan.out } : { text: scan.out, replyTag: scan.replyTag };
}

/** Decides about the next piece; returns false when the decision depends on text still to come. */
function step(scan: Scan): boolean {
  const char = scan.source.charAt(scan.at);
  const isLineStart = scan.at === 0 || scan.source.charAt(scan.at - 1) === '\n';
  if (isLineStart && /[ `~\t]/.test(char)) {
    const fenced = copyFence(scan);
    if (fenced !== undefined) return fenced;
  }
  if (char === '`') return copyCode(scan);
  if (char === '<' || char === '[') return readMarker(scan);
  take(scan, nextSpecial(scan.source, scan.at + 1) - scan.at);
  return true;
}

function nextSpecial(source: string, from: number): number {
  for (let index = from; index < source.length; index += 1) {
    const char = source.charAt(index);
    if (char === '<' || char === '[' || char === '`' || source.charAt(index - 1) === '\n') return index;
  }
  return source.length;
}

/** Copies a fenced block; returns undefined when there is none here. */
function copyFence(scan: Scan): boolean | undefined {
  const fence = matchAt(FENCE, scan);
  const rest = scan.source.slice(scan.at);
  if (!fence) return !scan.isFinal && /^[ \t]{0,3}(?:`{0,2}|~{0,2})$/.test(rest) ? false : undefined;
  const marker = fence[1] ?? '```';
  // A line that begins with ticks and has more ticks after other text is a code span, not a fence.
  if (marker.startsWith('`') && fence[0].trim().slice(marker.length).includes('`')) return undefined;
  if (!scan.isFinal && !fence[0].endsWith('\n')) return false;
  const closing = new RegExp(`^[ \\t]{0,3}${marker.charAt(0)}{${marker.length},}[ \\t]*$`, 'm');
  const body = rest.slice(fence[0].length);
  const end = closing.exec(body);
  const length = end ? fence[0].length + end.index + end[0].length : rest.length;
  take(scan, length);
  return true;
}

/** Copies a code span, which ends on the same line; ticks that are never closed are plain text. */
function copyCode(scan: Scan): boolean {
  const ticks = matchAt(TICKS, scan)?.[0] ?? '`';
  const line = lineAt(scan);
  const end = line.spans.get(scan.at);
  const isOpen = line.end === scan.source.length && !scan.isFinal;
  if (isOpen && (end === undefined || end === line.end)) return false;
  take(scan, end === undefined ? ticks.length : end - scan.at);
  return true;
}

/** Reads each line once, however many code spans it contains. */
function lineAt(scan: Scan): Line {
  const { source, at, line } = scan;
  if (line.end >= at) return line;
  const found = source.indexOf('\n', at);
  const end = found === -1 ? source.length : found;
  scan.line = { end, spans: pairTicks(source.slice(at, end), at) };
  return scan.line;
}

/** Pairs runs of ticks: a code span ends with the next run of the same length as its opening one. */
function pairTicks(text: string, from: number): ReadonlyMap<number, number> {
  const spans = new Map<number, number>();
  const lastOfLength = new Map<number, number>();
  for (const { 0: run, index } of text.matchAll(/`+/g)) {
    const start = from + index;
    const opening = lastOfLength.get(run.length);
    if (opening !== undefined) spans.set(opening, start + run.length);
    lastOfLength.set(run.length, start);
  }
  return spans;
}

function readMarker(scan: Scan): boolean {
  const skipped = matchAt(ROLE_TOKEN, scan) ?? matchAt(BOUNDARY, scan);
  if (skipped) return skip(scan, skipped[0].length);
  const tag = matchAt(REPLY_TAG, scan);
  if (tag) {
    if (!scan.isFinal && scan.at + tag[0].length === scan.source.length) return false;
    scan.replyTag = tag[2] ?? 'current';
    return skip(scan, tag[0].length);
  }
  const opening = matchAt(OPENING, scan) ?? matchAt(BRACKET_BLOCK, scan);
  if (opening) return skipBlock(scan, opening[0], opening[1] ?? '');
  const stray = matchAt(STRAY, scan);
  if (stray) return readTag(scan, stray[0].length);
  const rest = scan.source.slice(scan.at, scan.at + LONGEST_MARKER);
  const mayGrow =
    !scan.isFinal && scan.at + rest.length === scan.source.length && UNFINISHED_MARKER.test(rest);
  if (mayGrow) return false;
  take(scan, 1);
  return true;
}

/** Removes a tag unless a sentence mentions it. */
function readTag(scan: Scan, length: number): boolean {
  const mention = mentionAt(scan, length);
  if (mention === 'wait') return false;
  if (mention) take(scan, length);
  else scan.at += length;
  return true;
}

function mentionAt({ source, at, lineEnd, isFinal }: Scan, length: number): boolean | 'wait' {
  const after = source.slice(at + length, at + length + mentionLength);
  return isMentioned({ before: lineEnd, after }, isFinal);
}

function skipBlock(scan: Scan, opening: string, name: string): boolean {
  const from = scan.at + opening.length;
  const end = endOfBlock(scan, from, name);
  const mention = mentionAt(scan, opening.length) === true;
  if (end !== undefined) {
    const between = scan.source.slice(from, Math.min(end, from + LONGEST_MARKER)).replace(/<[^<]*$/, '');
    if (mention && BETWEEN_MENTIONED.test(between)) {
      take(scan, end - scan.at);
      return true;
    }
    const gap = /^\s*/.exec(scan.source.slice(end))?.[0] ?? '';
    // The gap may still grow, and all of it is skipped.
    if (!scan.isFinal && end + gap.length === scan.source.length) return false;
    scan.at = scan.isLineBlank ? end + gap.length : end;
    return true;
  }
  if (!scan.isFinal) return false;
  if (mention) take(scan, opening.length);
  else scan.at = scan.isLineBlank ? scan.source.length : from;
  return true;
}

/** Returns where the block that was opened just before `from` ends, taking nested ones into account. */
function endOfBlock({ source, blocks }: Scan, from: number, name: string): number | undefined {
  const kind = `${source.charAt(from - 1)}${name.toLowerCase()}`;
  const known = blocks.get(kind) ?? pairTags(source, kind);
  blocks.set(kind, known);
  return known.get(from);
}

/** Finds all blocks of a name in one pass, because a separate search for each end would reread the rest of the text. */
function pairTags(source: string, kind: string): ReadonlyMap<number, number> {
  const name = kind.slice(1);
  const tags = kind.startsWith(']')
    ? new RegExp(`\\[(/?)${name}\\]`, 'gi')
    : new RegExp(`<(/?)(?:\\w{1,12}:)?${name}(?:\\s[^<>]{0,200})?>`, 'gi');
  const ends = new Map<number, number>();
  const open: number[] = [];
  for (const tag of source.matchAll(tags)) {
    const end = tag.index + tag[0].length;
    if (tag[1] !== '/') {
      open.push(end);
      continue;
    }
    const opened = open.pop();
    if (opened !== undefined) ends.set(opened, end);
  }
  return ends;
}

function matchAt(pattern: RegExp, scan: Scan): RegExpExecArray | undefined {
  pattern.lastIndex = scan.at;
  return pattern.exec(scan.source) ?? undefined;
}

function take(scan: Scan, length: number): void {
  const piece = scan.source.slice(scan.at, scan.at + length);
  const line = piece.slice(piece.lastIndexOf('\n') + 1);
  scan.isLineBlank = (scan.isLineBlank || line.length < piece.length) && !/[^ \t]/.test(line);
  scan.lineEnd = `${line.length < piece.length ? '' : scan.lineEnd}${line.slice(-lineEndLength)}`.slice(
    -lineEndLength,
  );
  scan.out += piece;
  scan.at += length;
}

function skip(scan: Scan, length: number): boolean {
  scan.at += length;
  return true;
}

// The only outbound sanitiser. It removes controls first, so that none can hide a marker, then scaffolding.

/** Returns a finished answer as a person may see it, and the reply tag it contained. */
export function sanitizeOutbound(text: string): StripResult {
  return stripScaffolding(stripControls(text));
}

/** Sanitises an unfinished answer: always a prefix of what `sanitizeOutbound` returns for the finished one. */
export function sanitizeStreaming(text: string): string {
  return stripScaffoldingStreaming(stripControlsStreaming(text));
}
