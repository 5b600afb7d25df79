/**
 * Outbound → one call of signal-cli-rest-api, and its answer → result. Pure. Markup is sent as markers, with everything
 * literal escaped.
 */
import { z } from 'zod';
import { failed, sent, uploadName } from '#channel-kit/send-result.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import type { MessageId } from '#contracts/ids.ts';
import { filesOf, type Outbound, type SendResult } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type {
  ReactionRequest,
  RemoteDeleteRequest,
  RemoveReactionRequest,
  SendRequest,
} from './api.generated.ts';
import { capabilities } from './capabilities.ts';
import { type Bot, isGroupId, messageIdOf, readMessageId, recipientOf } from './ids.ts';
import { toStyledText } from './styled-text.ts';

export type Call =
  | { readonly kind: 'send'; readonly request: SendRequest }
  | { readonly kind: 'send-files'; readonly request: SendRequest; readonly files: readonly OutgoingFile[] }
  | { readonly kind: 'delete'; readonly request: RemoteDeleteRequest }
  | { readonly kind: 'react'; readonly request: ReactionRequest }
  | { readonly kind: 'unreact'; readonly request: RemoveReactionRequest }
  /** A route, message or text that can't be Signal's. */
  | { readonly kind: 'none'; readonly reason: string };

/** `dataUri`: the header that precedes the bytes in base64. */
export type OutgoingFile = { readonly path: string; readonly dataUri: string };

export type SendContext = {
  readonly bot: Bot;
  /** The beginning of the message that the route replies to; empty if not known. */
  readonly quotedText: string;
};

export function toCall({ route, content }: Outbound, sending: SendContext): Call {
  const recipient = recipientOf(route.conversation);
  if (recipient === undefined) return none('the conversation has no Signal id');
  const { bot } = sending;
  switch (content.kind) {
    case 'text': {
      if (isTooLong(content.text)) return none('the text is longer than the limit');
      const request = { ...messageTo(bot, recipient, content.text), ...quoteOf(route, sending) };
      return { kind: 'send', request };
    }
    case 'media': {
      if (isTooLong(content.caption)) return none('the caption is longer than the limit');
      const request = { ...messageTo(bot, recipient, content.caption), ...quoteOf(route, sending) };
      const files = filesOf(content).map((file) => ({ path: file.path, dataUri: dataUriOf(file) }));
      return { kind: 'send-files', request, files };
    }
    case 'edit': {
      const target = readMessageId(content.messageId);
      if (target?.author !== bot.aci) return none('only a message of the bot can be edited');
      // An edit has only text, so the files would be gone.
      if (content.isCaption) return none('the text of a message with files cannot be edited');
      if (isTooLong(content.text)) return none('the text is longer than the limit');
      const edit = { edit_timestamp: target.timestamp };
      return { kind: 'send', request: { ...messageTo(bot, recipient, content.text), ...edit } };
    }
    case 'delete': {
      const target = readMessageId(content.messageId);
      if (target?.author !== bot.aci) return none('only a message of the bot can be deleted');
      return { kind: 'delete', request: { recipient, timestamp: target.timestamp } };
    }
    case 'action':
      return none('this network has no such action');
    case 'reaction': {
      const target = readMessageId(content.messageId);
      if (target === undefined) return none('the message has no Signal id');
      const request = { recipient, target_author: target.author, timestamp: target.timestamp };
      const { emoji, isRemoved } = content;
      if (emoji === '') return { kind: 'unreact', request };
      return { kind: isRemoved ? 'unreact' : 'react', request: { ...request, reaction: emoji } };
    }
    default:
      return content satisfies never;
  }
}

function none(reason: string): Call {
  return { kind: 'none', reason };
}

function isTooLong(text: FormattedText | undefined): boolean {
  return (text?.text.length ?? 0) > capabilities.text.maxLength;
}

function messageTo(bot: Bot, recipient: string, text: FormattedText | undefined): SendRequest {
  // The mode is always given; otherwise the server's DEFAULT_SIGNAL_TEXT_MODE would decide.
  const { message, textMode } = toStyledText(text ?? { text: '', spans: [] });
  return { number: bot.number, recipients: [recipient], message, text_mode: textMode };
}

/** Apps show the quoted message from their own history; the text here is for those that lack it. */
function quoteOf({ replyTo }: ReplyRoute, { quotedText }: SendContext): Partial<SendRequest> {
  const quoted = replyTo === undefined ? undefined : readMessageId(replyTo);
  if (quoted === undefined) return {};
  return { quote_timestamp: quoted.timestamp, quote_author: quoted.author, quote_message: quotedText };
}

/** Characters that would end a field in the header of a data URI. */
const endsField = /["';,\\/]/g;

function dataUriOf({ mimeType, name }: { readonly mimeType: string; readonly name: string }): string {
  const type = /^[\w.+-]+\/[\w.+-]+$/.test(mimeType) ? mimeType : 'application/octet-stream';
  return `data:${type};filename=${uploadName(name, endsField)};base64,`;
}

const sentSchema = z.object({
  timestamp: z.string().regex(/^\d{1,16}$/),
  errors: z
    .object({ recipients: z.array(z.object({ uuid: z.string().nullish(), reason: z.string().nullish() })) })
    .nullish(),
});
/** Releases up to 0.100 answer with an object, later ones with an array that has one per recipient group. */
const sentAnswerSchema = z.union([sentSchema.transform((one) => [one]), z.array(sentSchema).min(1)]);

export type Sent = {
  readonly result: SendResult;
  /** How many members of a group the message didn't reach. */
  readonly missed: number;
};

/** Maps a 2xx answer to a result. */
export function readSent(body: unknown, { content, route }: Outbound, bot: Bot): Sent {
  if (content.kind === 'delete' || content.kind === 'reaction') return { result: sent(), missed: 0 };
  const parsed = sentAnswerSchema.safeParse(body);
  const [answer] = parsed.success ? parsed.data : [];
  const failures = answer?.errors?.recipients ?? [];
  if (failures.length > 0 && !isGroupId(route.conversation)) return { result: missedBy(failures), missed: 1 };
  if (content.kind === 'edit') return { result: sent(content.messageId), missed: failures.length };
  const receipts = answer === undefined ? [] : [receiptOf(bot, answer.timestamp)];
  return { result: sent(...receipts), missed: failures.length };
}

function receiptOf({ aci }: Bot, timestamp: string): MessageId {
  return messageIdOf({ author: aci, timestamp: Number(timestamp) });
}

/** Returns the result when the only recipient didn't get the message, although the call was accepted. */
function missedBy(failures: readonly { readonly reason?: string | null | undefined }[]): SendResult {
  const reason = failures[0]?.reason ?? 'not delivered';
  if (/unregistered/i.test(reason)) return failed('unreachable', reason);
  return { kind: 'retry', afterMs: 0, reason };
}
