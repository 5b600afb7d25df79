/** Words what precedes an answer where a person has asked for it: the model's reasoning, and the tool calls. Pure. */
import { parseJson } from '#channel-kit/parse-json.ts';
import type { Capabilities } from '#contracts/capabilities.ts';
import type { DisplayChoice } from '#contracts/display.ts';
import { type FormattedText, plainText } from '#contracts/formatted-text.ts';
import type { MessagePart, ToolCallData } from '#contracts/message.ts';
import { chunkFormatted, nativeLength } from './chunk.ts';
import { sanitizeOutbound } from './scaffolding.ts';

/** Longest reasoning that is shown, UTF-16 units. */
const maxReasoning = 3_000;
/** How much of its end is shown while the model thinks. */
const maxNewest = 500;
const maxLine = 160;
/** The newest lines are shown. */
const maxLines = 20;

/** Returns the message's reasoning as a quote; undefined without any. */
function quoteReasoning(parts: readonly MessagePart[]): FormattedText | undefined {
  const written = parts
    .flatMap((part) => (part.type === 'reasoning' ? [part.data.thinking] : []))
    .join('\n\n');
  const { text } = sanitizeOutbound(written.slice(0, 4 * maxReasoning));
  return quote(fit(text.trim(), maxReasoning));
}

/** Returns the end of reasoning that is still being written, as a quote. */
export function quoteNewest(written: string): FormattedText | undefined {
  const newest = sanitizeOutbound(written.slice(-maxNewest).toWellFormed()).text.trim();
  return quote(written.length > maxNewest ? `…${newest}` : newest);
}

function quote(words: string): FormattedText | undefined {
  if (words === '') return undefined;
  const text = `💭 ${words}`;
  return { text, spans: [{ kind: 'quote', start: 0, length: text.length }] };
}

/** Returns the line of a finished call: its arguments, or why it failed. `result`: its text for the model. */
export function toolLine(
  call: ToolCallData,
  result: { readonly text: string; readonly isError: boolean },
): string {
  const [sign, detail] = result.isError ? ['⚠', result.text] : ['⚙', argumentsOf(call.input)];
  const line = oneLine(detail);
  return line === '' ? `${sign} ${call.name}` : `${sign} ${call.name}: ${line}`;
}

/** Returns the line of what the agent said beside tool calls; undefined if it said nothing. */
export function saidLine(text: string): string | undefined {
  const line = oneLine(text);
  return line === '' ? undefined : `💬 ${line}`;
}

/** Returns the lines as one message; undefined without any. */
export function summaryOf(lines: readonly string[]): FormattedText | undefined {
  if (lines.length === 0) return undefined;
  const left = lines.length - maxLines;
  return plainText([...(left > 0 ? [`… (${left})`] : []), ...lines.slice(-maxLines)].join('\n'));
}

/** Returns the messages that precede an answer. `parts`: those of its message. */
export function leadsOf(
  { verbose, reasoning }: DisplayChoice,
  { parts, lines }: { readonly parts: readonly MessagePart[]; readonly lines: readonly string[] },
): readonly FormattedText[] {
  const quoted = reasoning === 'on' || reasoning === 'stream' ? quoteReasoning(parts) : undefined;
  const summary = verbose === 'on' ? summaryOf(lines) : undefined;
  return [summary, quoted].filter((lead) => lead !== undefined);
}

/** Puts the messages in front of an answer: the last one into its first message, if that has room and `joins`. */
export function withLeads(
  leads: readonly FormattedText[],
  texts: readonly FormattedText[],
  { limits, joins }: { readonly limits: Capabilities['text']; readonly joins: boolean },
): readonly FormattedText[] {
  const last = leads.at(-1);
  const [first, ...rest] = texts;
  const fitting = leads.flatMap((lead) => chunkFormatted(lead, limits));
  if (!joins || last === undefined || first === undefined) return [...fitting, ...texts];
  const joined = joinTexts(last, first);
  if (nativeLength(joined, limits) > limits.maxLength) return [...fitting, ...texts];
  return [...leads.slice(0, -1).flatMap((lead) => chunkFormatted(lead, limits)), joined, ...rest];
}

/** Joins two texts as paragraphs. */
export function joinTexts(first: FormattedText, then: FormattedText): FormattedText {
  const text = `${first.text}\n\n`;
  const moved = then.spans.map((span) => ({ ...span, start: span.start + text.length }));
  return { text: text + then.text, spans: [...first.spans, ...moved] };
}

function argumentsOf(input: string): string {
  const parsed = parseInput(input);
  if (parsed === null || typeof parsed !== 'object') return '';
  return Object.values(parsed)
    .map((value) => (typeof value === 'string' ? value.slice(0, maxLine) : JSON.stringify(value)))
    .join(' ');
}

function parseInput(input: string): unknown {
  try {
    return parseJson(input);
  } catch {
    // The model wrote no JSON, so the call has failed, and its line says why.
    return undefined;
  }
}

function oneLine(text: string): string {
  return fit(
    sanitizeOutbound(text.slice(0, 4 * maxLine))
      .text.replace(/\s+/g, ' ')
      .trim(),
    maxLine,
  );
}

function fit(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1).toWellFormed()}…` : text;
}
