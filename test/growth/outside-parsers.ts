/** Parsers of complete events, histories and documents from outside; those of texts are in `parsers.ts`. */

import { parseJson } from '#channel-kit/parse-json.ts';
import { OversizedJson } from '#channel-kit/read-json.ts';
import { readWritten as readDiscord } from '../../channels/discord/message-content.ts';
import { readMessageFields as discordFields } from '../../channels/discord/payload-schema.ts';
import { latestIdIn } from '../../channels/discord/raw-fields.ts';
import { parseFrame } from '../../channels/signal/frame.ts';
import { botOf as signalBot } from '../../channels/signal/ids.ts';
import { readFrames } from '../../channels/signal/inbound.ts';
import { botOf as telegramBot } from '../../channels/telegram/ids.ts';
import { readBatch } from '../../channels/telegram/inbound.ts';
import { pairCalls } from '../../src/agent/call-pairs.ts';
import { requestOf } from '../../src/agent/convert.ts';
import { fitContext } from '../../src/agent/fit-context.ts';
import { marksFor } from '../../src/agent/repair-history.ts';
import { transcriptId } from '../../src/contracts/ids.ts';
import { type AgentMessage, type MessagePart, textOf } from '../../src/contracts/message.ts';
import type { Parser } from './parsers.ts';

/** Makes one value for every eight characters. */
function cut<T>(text: string, make: (piece: string, at: number) => T): readonly T[] {
  const made: T[] = [];
  for (let at = 0; at < text.length; at += 8) made.push(make(text.slice(at, at + 8), at));
  return made;
}

function message(role: AgentMessage['role'], at: number, ...parts: readonly MessagePart[]): AgentMessage {
  return { id: transcriptId(String(at)), role, parts, createdAt: 0 };
}

const says = (text: string): MessagePart => ({ type: 'text', data: { text } });
const ended: MessagePart = { type: 'finish', data: { reason: 'tool_use', time: 0 } };
const calls = (id: string): MessagePart => ({
  type: 'tool_call',
  data: { id, name: id, input: id, finished: true },
});
const answers = (id: string): MessagePart => ({
  type: 'tool_result',
  data: { tool_call_id: id, name: id, content: id, is_error: false },
});

/** A history in which one side says everything. */
const monologue = (role: 'user' | 'assistant', text: string) =>
  cut(text, (piece, at) => message(role, at, says(piece), ended));

/** A history of calls, most of them under one id, each with its result. */
const workday = (text: string) =>
  cut(text, (piece, at) => [
    message('assistant', at, calls(piece), calls(`${piece}-`), ended),
    message('tool', at + 1, answers(piece)),
  ]).flat();

function repairs(text: string): unknown {
  const messages = workday(text);
  return marksFor({ kind: 'unsendable', detail: text.slice(0, 500) }, requestOf(messages), messages);
}

const fitted = (text: string) =>
  fitContext(monologue('user', text), { window: text.length / 8, tokens: text.length });

const aci = '0a0b0c0d-0000-4000-8000-000000000001';
const known = {
  bot: signalBot({ aci, number: '+4900000', name: 'Parley' }),
  nameOf: () => 'Somebody with a name',
  originalOf: ({ timestamp }: { readonly timestamp: number }) => timestamp,
  groupOf: () => undefined,
  learn: () => undefined,
};

function signalFrames(text: string): unknown {
  const mentions = [...text.slice(0, 1_000)].map((_, start) => ({ start, length: 1, uuid: aci }));
  const dataMessage = {
    timestamp: 1,
    message: text,
    mentions,
    quote: { id: 1, authorUuid: aci, text, mentions },
  };
  const frame = { account: '+4900000', envelope: { sourceUuid: aci, timestamp: 1, dataMessage } };
  return readFrames([frame, ...cut(text, (piece) => piece)], known);
}

const telegramMe = telegramBot({ id: 1, username: 'parley_bot' });

function telegramUpdates(text: string): unknown {
  const entities = cut(text, (_, offset) => ({ type: 'mention', offset, length: text.length }));
  const chat = { id: 5, type: 'private', first_name: text };
  const update = (id: number) => ({
    update_id: id,
    message: {
      message_id: id,
      date: 1,
      chat,
      from: { id: 5, is_bot: false, first_name: text },
      text,
      entities,
    },
  });
  const types = ['bold', 'blockquote', 'text_link', 'pre'];
  const marks = cut(text, (piece, offset) => ({
    type: types[(offset / 8) % 4],
    offset,
    length: text.length,
    url: piece,
  }));
  const marked = { ...update(3).message, entities: marks };
  const blocks = cut(text, (piece) => ({
    type: 'list',
    items: [{ label: piece, blocks: [{ type: 'code', text }] }],
  }));
  const rich = { ...update(4).message, text: undefined, rich_message: { blocks: blocks.slice(0, 8) } };
  const more = [marked, rich].map((message, index) => ({ update_id: 3 + index, message }));
  return readBatch([update(1), update(2), ...more, ...cut(text, (piece) => piece)], telegramMe, 1);
}

function discordMessages(text: string): unknown {
  const author = { id: '1400000000000000001', username: 'ada' };
  const parsed = discordFields({
    ...{ id: '1450000000000000000', type: 0, channel_id: '1200000000000000002', author, content: text },
    ...{ timestamp: '2026-11-20T10:00:00.000000+00:00', mentions: cut(text, () => author), attachments: [] },
  });
  const names = {
    bot: { id: '1100000000000000001', name: 'parley', account: telegramMe.account },
    directory: { isOwnRole: () => false, roleName: () => 'a role', channelName: () => 'a channel' },
    recent: { authorOf: () => undefined },
  };
  return readDiscord(parsed, '1200000000000000001', names);
}

/** Parses the text itself, which usually isn't JSON, then a list of values, and then brackets nested by its length. */
function documents(text: string): void {
  for (const json of [
    text,
    JSON.stringify(cut(text, (piece) => ({ piece }))),
    `[${text.replace(/[^[\]]/g, '[')}`,
  ])
    try {
      parseJson(json);
    } catch {
      // Rejected in time.
    }
}

export const outsideParsers: readonly Parser[] = [
  { name: 'request of many messages', run: (text) => requestOf(monologue('user', text)) },
  { name: 'request of many answers', run: (text) => requestOf(monologue('assistant', text)) },
  { isSlow: true, name: 'request of many calls', run: (text) => requestOf(workday(text)) },
  { name: 'pairCalls, wire ids', run: (text) => pairCalls(workday(text)) },
  { name: 'fitContext', run: fitted },
  { isSlow: true, name: 'marksFor', run: repairs },
  { name: 'textOf, sessions_history', run: (text) => textOf(cut(text, says)) },
  { name: 'parseJson', run: documents },
  { name: 'signal parseFrame', run: parseFrame },
  { name: 'signal readFrames', run: signalFrames },
  { name: 'telegram readBatch', run: telegramUpdates },
  { name: 'discord latestIdIn', run: (text) => latestIdIn(new OversizedJson(text)) },
  { name: 'discord message', run: discordMessages },
];
