/** Outbound → one Bot API call. Pure. Markup is sent as entities, so that no text can be misread as markup. */
import type { ReactionTypeEmoji } from 'grammy/types';
import type { RawApi } from 'grammy/web';
import { uploadName } from '#channel-kit/send-result.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import { type Button, filesOf, type Outbound, type OutboundMedia } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { capabilities } from './capabilities.ts';
import { type FileKind, fileKind } from './file-kind.ts';
import { generalTopic, numericId } from './ids.ts';
import { entitiesOf } from './outbound-entities.ts';
import { type ActionCall, actionCall } from './tools.ts';

type Payload<Method extends keyof RawApi> = Parameters<RawApi[Method]>[0];

export type Call =
  | { readonly method: 'sendMessage'; readonly payload: Payload<'sendMessage'> }
  | {
      readonly method: 'editMessageText';
      readonly payload: Payload<'editMessageText'> & { readonly message_id: number };
    }
  | {
      readonly method: 'editMessageCaption';
      readonly payload: Payload<'editMessageCaption'> & { readonly message_id: number };
    }
  | { readonly method: 'deleteMessage'; readonly payload: Payload<'deleteMessage'> }
  | { readonly method: 'setMessageReaction'; readonly payload: Payload<'setMessageReaction'> }
  | UploadCall
  | AlbumCall
  | ActionCall
  /** A route or message id that isn't one of Telegram's. */
  | { readonly method: 'none'; readonly reason: string };

export type OutgoingFile = { readonly path: string; readonly name: string };

export type UploadCall = {
  readonly method: (typeof methods)[keyof typeof methods];
  /** Fields that all these methods take. */
  readonly payload: Omit<Payload<'sendDocument'>, 'document'>;
  readonly file: OutgoingFile;
};

export type AlbumCall = {
  readonly method: 'sendMediaGroup';
  readonly payload: Omit<Payload<'sendMediaGroup'>, 'media'>;
  readonly items: readonly (ReturnType<typeof captionPayload> & {
    readonly type: FileKind;
    readonly file: OutgoingFile;
  })[];
};

const methods = {
  photo: 'sendPhoto',
  video: 'sendVideo',
  animation: 'sendAnimation',
  audio: 'sendAudio',
  voice: 'sendVoice',
  document: 'sendDocument',
} as const;

const maxFileBytes = capabilities.media?.maxBytes ?? 0;

/** Returns the call for a part. `sizes`: of the files to send, in bytes. */
export function toCall({ route, content }: Outbound, sizes: readonly number[] = []): Call {
  const chatId = numericId(route.conversation);
  if (chatId === undefined) return { method: 'none', reason: 'the conversation has no Telegram id' };
  const target = { chat_id: chatId, ...topicOf(route) };
  switch (content.kind) {
    case 'text':
      return {
        method: 'sendMessage',
        payload: {
          ...target,
          ...textPayload(content.text),
          ...keyboardOf(content.buttons),
          ...replyOf(route),
        },
      };
    case 'media':
      return mediaCall({ ...target, ...replyOf(route) }, content, sizes);
    case 'action': {
      const call = actionCall(content, target);
      if (call === undefined) return { method: 'none', reason: 'the action cannot be read' };
      return call.method === 'sendPoll' ? { ...call, payload: { ...call.payload, ...replyOf(route) } } : call;
    }
    case 'edit':
    case 'delete':
    case 'reaction':
      return changeCall(chatId, content);
    default:
      return content satisfies never;
  }
}

function mediaCall(
  target: AlbumCall['payload'],
  content: OutboundMedia,
  sizes: readonly number[],
): UploadCall | AlbumCall | Extract<Call, { method: 'none' }> {
  if (sizes.some((size) => size > maxFileBytes))
    return { method: 'none', reason: `the file is larger than ${maxFileBytes} bytes` };
  const caption = captionPayload(content.caption);
  const items = filesOf(content).map(({ path, name, mimeType }, index) => ({
    type: fileKind({ mimeType, sizeBytes: sizes[index] ?? 0 }),
    file: { path, name: uploadName(name, endsName) },
    // Apps show a caption under the album if exactly one of its files has one.
    ...(index === 0 && caption),
  }));
  const [first, ...more] = items;
  if (first === undefined) return { method: 'none', reason: 'there is no file to send' };
  if (more.length > 0) return { method: 'sendMediaGroup', payload: target, items };
  const method = content.asVoice ? methods.voice : methods[first.type];
  return { method, payload: { ...target, ...caption }, file: first.file };
}

type Change = Extract<Outbound['content'], { kind: 'edit' | 'delete' | 'reaction' }>;

function changeCall(chatId: number, content: Change): Call {
  const number = numericId(content.messageId);
  if (number === undefined) return { method: 'none', reason: 'the message has no Telegram id' };
  const target = { chat_id: chatId, message_id: number };
  switch (content.kind) {
    case 'edit':
      if (content.isCaption)
        return { method: 'editMessageCaption', payload: { ...target, ...captionPayload(content.text) } };
      return {
        method: 'editMessageText',
        payload: { ...target, ...textPayload(content.text), ...keyboardOf(content.buttons) },
      };
    case 'delete':
      return { method: 'deleteMessage', payload: target };
    case 'reaction':
      return {
        method: 'setMessageReaction',
        payload: { ...target, reaction: content.isRemoved ? [] : reactionOf(content.emoji) },
      };
    default:
      return content satisfies never;
  }
}

function textPayload(text: FormattedText) {
  return { text: text.text, entities: entitiesOf(text), link_preview_options: { is_disabled: true } };
}

/** Returns a keyboard of one row. An edit without a keyboard removes the existing one. */
function keyboardOf(buttons: readonly Button[] = []) {
  if (buttons.length === 0) return {};
  const row = buttons.map(({ id, label }) => ({ text: label, callback_data: id }));
  return { reply_markup: { inline_keyboard: [row] } };
}

/** Returns the thread to name in a send. Naming the General topic fails: "message thread not found". */
export function topicOf(route: ReplyRoute): { readonly message_thread_id?: number } {
  const topic = route.thread === undefined ? undefined : numericId(route.thread);
  return topic === undefined || topic === generalTopic ? {} : { message_thread_id: topic };
}

function captionPayload(caption: FormattedText | undefined) {
  if (caption === undefined || caption.text === '') return {};
  return { caption: caption.text, caption_entities: entitiesOf(caption) };
}

/** The quoted message may be gone by now; the answer must arrive anyway. */
function replyOf(route: ReplyRoute) {
  const number = route.replyTo === undefined ? undefined : numericId(route.replyTo);
  if (number === undefined) return {};
  return { reply_parameters: { message_id: number, allow_sending_without_reply: true } };
}

/** Telegram accepts a fixed list without variation selectors; the closest emoji replaces one that the list lacks. */
const standIns: Readonly<Record<string, string>> = { '⚠': '😢', '✅': '👍', '❌': '👎', '⏳': '👀' };

function reactionOf(emoji: string): ReactionTypeEmoji[] {
  const bare = emoji.replaceAll('\ufe0f', '');
  // Not checked against grammY's list: Telegram's own list grows, and it refuses any emoji it doesn't accept.
  const wanted = (standIns[bare] ?? bare) as ReactionTypeEmoji['emoji'];
  return bare === '' ? [] : [{ type: 'emoji', emoji: wanted }];
}

/** grammY writes the name unescaped into a header of the upload, where these characters would end it. */
const endsName = /["';\\/]/g;
