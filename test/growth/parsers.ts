import { assertSafeJson } from '#channel-kit/json-guard.ts';
import { toMarkdown } from '../../channels/discord/markup.ts';
import { toStyledText } from '../../channels/signal/styled-text.ts';
import { entitiesOf } from '../../channels/telegram/outbound-entities.ts';
import { onOneLine } from '../../plugins/files/file-problem.ts';
import { compileGlob, compileSearch } from '../../plugins/files/search-pattern.ts';
import { htmlToMarkdown } from '../../plugins/web/html-to-markdown.ts';
import { AssistantDraft } from '../../src/agent/assistant-draft.ts';
import { cleanText, fitBytes, fitChars } from '../../src/channel-kit/clean-text.ts';
import { printable, rowsOf } from '../../src/cli/chat-screen.ts';
import { parseCommand } from '../../src/commands/list.ts';
import { type FormattedText, plainText, type Span } from '../../src/contracts/formatted-text.ts';
import { accountId, channelId, conversationId, transcriptId } from '../../src/contracts/ids.ts';
import type { ReplyRoute } from '../../src/contracts/route.ts';
import { createRedactor, stripLogLine as stripLogControls, stripText } from '../../src/logging/redaction.ts';
import { ToolCallReader } from '../../src/models/openai/openai-tool-calls.ts';
import { TextReader } from '../../src/models/written/text-reader.ts';
import { blocksAfter } from '../../src/replies/block-stream.ts';
import { chunkFormatted } from '../../src/replies/chunk.ts';
import { judgeRepeat } from '../../src/replies/dedupe.ts';
import { isHonestLink, isQuickToParse } from '../../src/replies/markdown.ts';
import { createPreviewText, visibleWhileStreaming } from '../../src/replies/preview.ts';
import { sanitizeOutbound, sanitizeStreaming } from '../../src/replies/scaffolding.ts';
import { judgeSilence } from '../../src/replies/silence.ts';
import { renderInbound } from '../../src/replies/untrusted.ts';
import {
  cleanLabel,
  cleanUntrusted,
  stripControls,
  stripControlsStreaming,
} from '../../src/texts/untrusted-text.ts';
import { shaping } from '../support/free-loop.ts';

export type Parser = {
  readonly name: string;
  run(text: string): unknown;
  /** Linear, but measured with texts of half the length. */
  readonly isSlow?: boolean;
};

/** Styles every word, with one in seven a link, so there are as many spans as words. */
function styled(text: string): FormattedText {
  const kinds = ['bold', 'italic', 'strikethrough', 'code', 'spoiler', 'quote'] as const;
  const spans: Span[] = [];
  for (const { 0: word, index: start } of text.matchAll(/\p{L}+|[^\p{L}]/gu)) {
    const { length } = word;
    const number = spans.length;
    const kind = kinds[number % kinds.length] ?? 'bold';
    const url = `https://x.example/${number}`;
    spans.push(number % 7 === 0 ? { kind: 'link', start, length, url } : { kind, start, length });
  }
  return { text, spans };
}

const dm: ReplyRoute = {
  channel: channelId('telegram'),
  account: accountId('a'),
  conversation: conversationId('c'),
};
const redactor = createRedactor(['a-secret-value', 'another one']);

function stream(text: string, take: (piece: string) => void): void {
  const step = Math.max(1, Math.ceil(text.length / 40));
  for (let at = 0; at < text.length; at += step) take(text.slice(at, at + step));
}

function preview(text: string): void {
  const shown = createPreviewText({ context: ['chat'], capabilities: { text: { maxLength: 4_096 } } });
  stream(text, (piece) => {
    shown.push(piece);
    shown.now();
  });
}

function draftText(text: string): void {
  const draft = new AssistantDraft(transcriptId('x'), 0, new Set());
  for (const character of text) {
    draft.write({ type: 'content_delta', text: character });
    draft.snapshot();
  }
  draft.finish('end_turn', { time: 0 });
}

/** In the form of servers that give calls no ids and repeat the call's name in each chunk. */
function namedPieces(text: string): void {
  const calls = new ToolCallReader('x');
  for (let at = 0; at < text.length; at += 8)
    calls.read({ function: { name: 'x', arguments: `{"${text.slice(at, at + 8)}` } });
}

/** Thinking that never ends, chunk by chunk. */
function splitThinking(text: string): void {
  const splitter = new TextReader([]);
  splitter.take('<think>');
  for (let at = 0; at < text.length; at += 8) splitter.take(text.slice(at, at + 8));
  splitter.end();
}

/** Many calls with one id. */
function draftCalls(text: string): void {
  const draft = new AssistantDraft(transcriptId('x'), 0, new Set());
  const id = text.slice(0, 8);
  for (let at = 0; at < text.length; at += 8) {
    draft.write({ type: 'tool_use_start', id, name: id });
    draft.write({ type: 'tool_use_delta', id, json: text.slice(at, at + 8) });
  }
  draft.finish('end_turn', { time: 0 });
}

function repeat(text: string): unknown {
  const sent = { tool: 'message', state: 'sent', route: dm, media: [] } as const;
  const most = text.slice(0, Math.ceil(text.length * 0.7));
  return judgeRepeat(
    text,
    [
      { ...sent, text: `${most}x` },
      { ...sent, text: most },
    ],
    { route: dm },
  );
}

function inbound(text: string): unknown {
  return renderInbound({
    text,
    sender: { name: text, authority: 'guest' },
    sentAt: 0,
    isGroup: true,
    attachments: [],
    timeZone: 'UTC',
    quote: { author: text, text },
  });
}

/** Far below every compared length, so that one chunk more or less doesn't affect the comparison. */
const longestChunk = 200;

/** Everything on the event loop that reads text from outside. */
export const parsers: readonly Parser[] = [
  { name: 'stripControls', run: stripControls },
  { name: 'stripControlsStreaming', run: stripControlsStreaming },
  { name: 'sanitizeOutbound', run: sanitizeOutbound },
  { name: 'sanitizeStreaming', run: sanitizeStreaming },
  { name: 'judgeSilence', run: (text) => judgeSilence(text, ['heartbeat']) },
  { name: 'visibleWhileStreaming', run: (text) => visibleWhileStreaming(text, ['announce']) },
  { name: 'blocksAfter', run: (text) => blocksAfter(text, [], { minChars: 800, maxChars: 1_200 }) },
  { name: 'judgeRepeat', run: repeat },
  { name: 'isHonestLink, address', run: (text) => isHonestLink(`https://${text}`, 'x') },
  { name: 'isHonestLink, label', run: (text) => isHonestLink('https://x.example', text) },
  { name: 'isQuickToParse', run: isQuickToParse },
  {
    isSlow: true,
    name: 'text shaper',
    run: (text) => shaping.shaper.shape(text, { maxLength: longestChunk }),
  },
  { isSlow: true, name: 'preview', run: preview },
  { name: 'cleanUntrusted', run: cleanUntrusted },
  { name: 'cleanLabel', run: cleanLabel },
  { name: 'renderInbound', run: inbound },
  {
    isSlow: true,
    name: 'chunkFormatted',
    run: (text) => chunkFormatted(styled(text), { maxLength: longestChunk }),
  },
  {
    name: 'chunkFormatted, plain',
    run: (text) => chunkFormatted(plainText(text), { maxLength: longestChunk }),
  },
  { isSlow: true, name: 'discord toMarkdown', run: (text) => toMarkdown(styled(text)) },
  { name: 'discord toMarkdown, plain', run: (text) => toMarkdown(plainText(text)) },
  { isSlow: true, name: 'telegram entitiesOf', run: (text) => entitiesOf(styled(text)) },
  { isSlow: true, name: 'signal toStyledText', run: (text) => toStyledText(styled(text)) },
  { name: 'cleanText', run: cleanText },
  { name: 'fitBytes', run: (text) => fitBytes(text, 1_000) },
  { name: 'fitChars', run: (text) => fitChars(text, 1_000) },
  { name: 'assistant draft', run: draftText },
  { isSlow: true, name: 'assistant draft, calls', run: draftCalls },
  { name: 'tool calls of a stream', run: namedPieces },
  { name: 'thinking in the text', run: splitThinking },
  { name: 'parseCommand', run: (text) => parseCommand(`/${text}`) },
  { name: 'parseCommand queue', run: (text) => parseCommand(`/queue edit 1 ${text}`) },
  { name: 'parseCommand link', run: (text) => parseCommand(`/link ${text}`) },
  { name: 'parseCommand pair', run: (text) => parseCommand(`/pair ${text}`) },
  { name: 'redact', run: redactor.redact },
  { name: 'log controls', run: (text) => stripLogControls(JSON.stringify({ text })) },
  { name: 'stripText', run: stripText },
  { name: 'printable', run: printable },
  { isSlow: true, name: 'rowsOf', run: (text) => rowsOf(text, 80) },
  {
    isSlow: true,
    name: 'refuseHostileShape',
    run: (text) => assertSafeJson([...text].map((one) => ({ one }))),
  },
  { name: 'onOneLine', run: onOneLine },
  {
    isSlow: true,
    name: 'htmlToMarkdown',
    run: (text) => htmlToMarkdown(`<body>x${text}`, 'https://x.example/'),
  },
  { isSlow: true, name: 'grep', run: compileSearch('(a|b)*c.*[^x]{2,30}y', { ignoresCase: true }) },
  { name: 'glob', run: compileGlob('**/**/**/*a*/**/*b') },
];
