/** Outbound → one call of the REST API. Pure. Parley's text pings nobody, neither when sent nor when edited. */
import {
  type APIActionRowComponent,
  type APIButtonComponentWithCustomId,
  ButtonStyle,
  ComponentType,
  MessageFlags,
  type RESTAPIPoll,
} from 'discord.js';
import { uploadName } from '#channel-kit/send-result.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import { type Button, filesOf, type Outbound } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { capabilities } from './capabilities.ts';
import { interactionMessage, isSnowflake, nonceOf } from './ids.ts';
import { toMarkdown } from './markup.ts';
import { actionCall } from './tools.ts';
import type { UploadFile } from './upload-form.ts';
import type { Voice } from './voice.ts';

export type Call =
  | {
      readonly method: 'send';
      readonly channel: string;
      readonly body: SendBody;
      readonly files?: readonly UploadFile[];
    }
  | { readonly method: 'edit'; readonly channel: string; readonly message: string; readonly body: TextBody }
  | { readonly method: 'delete'; readonly channel: string; readonly message: string }
  | {
      readonly method: 'react' | 'unreact';
      readonly channel: string;
      readonly message: string;
      /** As encoded for the path. */
      readonly emoji: string;
    }
  | { readonly method: 'pin' | 'unpin'; readonly channel: string; readonly message: string }
  | { readonly method: 'thread'; readonly channel: string; readonly name: string; readonly message?: string }
  /** A route or message id that isn't one of Discord's, or more than Discord accepts. */
  | { readonly method: 'none'; readonly reason: string };

export type TextBody = {
  readonly content: string;
  readonly allowed_mentions: typeof noMentions;
  /** Pages linked in the model's text get no preview. */
  readonly flags: MessageFlags.SuppressEmbeds | MessageFlags.IsVoiceMessage;
  /** If absent, an edit keeps the existing ones. */
  readonly components?: readonly ButtonRow[];
};

type ButtonRow = APIActionRowComponent<APIButtonComponentWithCustomId>;

export type SendBody = TextBody & {
  /** Lets Discord recognize a repeated send, which it answers with the existing message. */
  readonly nonce: string;
  readonly enforce_nonce: true;
  readonly message_reference?: { readonly message_id: string; readonly fail_if_not_exists: false };
  readonly attachments?: readonly AttachmentNote[];
  readonly poll?: RESTAPIPoll;
};

/** Describes a file to Discord; the last two only for a voice message. */
type AttachmentNote = {
  readonly id: string;
  readonly filename: string;
  readonly duration_secs?: number;
  readonly waveform?: string;
};

const maxContent = 2000;
const maxUploadBytes = capabilities.media?.maxBytes ?? 0;

const noMentions = { parse: [], replied_user: false } as const;

/** Facts about the files to send: their sizes in bytes, and the sound if it is to be a voice message. */
export type FileFacts = { readonly sizes: readonly number[]; readonly voice?: Voice | undefined };

/** Returns the call for a part. */
export function toCall(outbound: Outbound, facts: FileFacts = { sizes: [] }): Call {
  const { route, content } = outbound;
  const channel = targetOf(route);
  if (!isSnowflake(channel)) return none('the conversation has no Discord id');
  switch (content.kind) {
    case 'text':
      return send(outbound, { channel, text: content.text, buttons: content.buttons });
    case 'media': {
      const files = filesOf(content).map(({ path, mimeType, name }, index) => ({
        ...{ path, mimeType, name: uploadName(name, endsName) },
        sizeBytes: facts.sizes[index] ?? 0,
      }));
      const totalBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      if (totalBytes > maxUploadBytes)
        return none(
          `${files.length === 1 ? 'the file is' : 'the files are'} larger than ${maxUploadBytes} bytes`,
        );
      return send(outbound, { channel, text: content.caption ?? nothing, files, voice: facts.voice });
    }
    case 'action': {
      const call = actionCall(content);
      if (call === undefined) return none('the action cannot be read');
      return call.method === 'poll'
        ? send(outbound, { channel, text: nothing, poll: call.poll })
        : { channel, ...call };
    }
    case 'edit':
    case 'delete':
    case 'reaction':
      return change(channel, content);
    default:
      return content satisfies never;
  }
}

type Change = Extract<Outbound['content'], { kind: 'edit' | 'delete' | 'reaction' }>;

const nothing: FormattedText = { text: '', spans: [] };

/** Returns the channel to write to: a thread is its own channel. */
export function targetOf(route: ReplyRoute): string {
  return route.thread ?? route.conversation;
}

function send(
  { key, route }: Outbound,
  input: {
    readonly channel: string;
    readonly text: FormattedText;
    readonly buttons?: readonly Button[] | undefined;
    readonly files?: readonly UploadFile[];
    readonly voice?: Voice | undefined;
    readonly poll?: RESTAPIPoll;
  },
): Call {
  const { channel, text, buttons, files, voice, poll } = input;
  const body = textBody(text, buttons);
  if (body === undefined) return none(`the text is longer than ${maxContent} characters`);
  const quoted = route.replyTo;
  return {
    method: 'send',
    channel,
    body: {
      ...body,
      nonce: nonceOf(key),
      enforce_nonce: true,
      // The quoted message may be gone by now; the answer must arrive anyway.
      ...(quoted !== undefined && isSnowflake(quoted)
        ? { message_reference: { message_id: quoted, fail_if_not_exists: false } }
        : {}),
      ...(files && { attachments: files.map(({ name }, index) => ({ id: String(index), filename: name })) }),
      ...(voice && files && voiceNotes(files, voice)),
      ...(poll && { poll }),
    },
    ...(files && { files }),
  };
}

/** Such a message takes one file and no text. */
function voiceNotes(
  files: readonly UploadFile[],
  { durationSecs, waveform }: Voice,
): Pick<SendBody, 'flags' | 'attachments'> {
  const attachments = files.map(({ name }, index) => {
    return { id: String(index), filename: name, duration_secs: durationSecs, waveform };
  });
  return { flags: MessageFlags.IsVoiceMessage, attachments };
}

function change(channel: string, content: Change): Call {
  const message = content.messageId;
  if (!isSnowflake(message)) return none('the message has no Discord id');
  switch (content.kind) {
    case 'edit': {
      const body = textBody(content.text, content.buttons);
      if (body === undefined) return none(`the text is longer than ${maxContent} characters`);
      return { method: 'edit', channel, message, body };
    }
    case 'delete':
      return { method: 'delete', channel, message };
    case 'reaction': {
      const emoji = reactionOf(content.emoji);
      const method = content.isRemoved ? 'unreact' : 'react';
      return emoji === '' ? none('there is no emoji') : { method, channel, message, emoji };
    }
    default:
      return content satisfies never;
  }
}

/** Returns undefined if the text is longer than Discord accepts. */
export function textBody(text: FormattedText, buttons?: readonly Button[]): TextBody | undefined {
  const content = toMarkdown(text);
  if (content.length > maxContent) return undefined;
  const components = buttons && { components: rowsOf(buttons) };
  return { content, allowed_mentions: noMentions, flags: MessageFlags.SuppressEmbeds, ...components };
}

function rowsOf(buttons: readonly Button[]): readonly ButtonRow[] {
  if (buttons.length === 0) return [];
  const components = buttons.map(({ id, label }): APIButtonComponentWithCustomId => {
    return { type: ComponentType.Button, style: ButtonStyle.Secondary, label, custom_id: id };
  });
  return [{ type: ComponentType.ActionRow, components }];
}

/** Returns the interaction that this part answers, if any. */
export function interactionOf({ route, content }: Outbound): string | undefined {
  return content.kind === 'text' ? interactionMessage.read(route.replyTo) : undefined;
}

/**
 * Encodes an emoji for the path: Unicode emoji as they are, with the selector that turns a symbol into an emoji where
 * Discord's own list has it; a guild's emoji as `name:id`.
 */
function reactionOf(emoji: string): string {
  const isSign = /^\p{Extended_Pictographic}$/u.test(emoji) && !/\p{Emoji_Presentation}/u.test(emoji);
  return encodeURIComponent(isSign ? `${emoji}\ufe0f` : emoji.toWellFormed());
}

/** Characters that would end the name in a header or a path. */
const endsName = /["\\/]/g;

function none(reason: string): Call {
  return { method: 'none', reason };
}
