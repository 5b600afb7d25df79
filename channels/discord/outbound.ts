/** Outbound → one call of the REST API. Pure. Our text pings nobody, in sends and in edits. */
import {
  type APIActionRowComponent,
  type APIButtonComponentWithCustomId,
  ButtonStyle,
  ComponentType,
  MessageFlags,
} from 'discord.js';
import { uploadName } from '#channel-kit/upload.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import type { Button, Outbound } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { capabilities } from './capabilities.ts';
import { interactionMessage, isSnowflake, nonceOf } from './ids.ts';
import { toMarkdown } from './markup.ts';

export type Call =
  | {
      readonly method: 'send';
      readonly channel: string;
      readonly body: SendBody;
      readonly file?: OutgoingFile;
    }
  | { readonly method: 'edit'; readonly channel: string; readonly message: string; readonly body: TextBody }
  | { readonly method: 'delete'; readonly channel: string; readonly message: string }
  | {
      readonly method: 'react';
      readonly channel: string;
      readonly message: string;
      /** As the path spells it. */
      readonly emoji: string;
    }
  /** A route or message id that is none of Discord's, or more than it takes. */
  | { readonly method: 'none'; readonly reason: string };

export type TextBody = {
  readonly content: string;
  readonly allowed_mentions: typeof noMentions;
  /** The model's text shows no previews of linked pages. */
  readonly flags: MessageFlags.SuppressEmbeds;
  /** Absent: an edit leaves those that are there. */
  readonly components?: readonly ButtonRow[];
};

type ButtonRow = APIActionRowComponent<APIButtonComponentWithCustomId>;

export type SendBody = TextBody & {
  /** Discord knows a repeated send by it, and answers with the existing message. */
  readonly nonce: string;
  readonly enforce_nonce: true;
  readonly message_reference?: { readonly message_id: string; readonly fail_if_not_exists: false };
  readonly attachments?: readonly { readonly id: '0'; readonly filename: string }[];
};

export type OutgoingFile = { readonly path: string; readonly name: string; readonly mimeType: string };

const maxContent = 2000;
const maxFileBytes = capabilities.media?.maxBytes ?? 0;

const noMentions = { parse: [], replied_user: false } as const;

/** `sizeBytes` is that of the file to send, where there is one. */
export function toCall(outbound: Outbound, sizeBytes = 0): Call {
  const { route, content } = outbound;
  const channel = targetOf(route);
  if (!isSnowflake(channel)) return none('the conversation has no Discord id');
  switch (content.kind) {
    case 'text':
      return send(outbound, { channel, text: content.text, buttons: content.buttons });
    case 'media': {
      if (sizeBytes > maxFileBytes) return none(`the file is larger than ${maxFileBytes} bytes`);
      const { path, mimeType, caption } = content;
      const name = uploadName(content.name, endsName);
      return send(outbound, { channel, text: caption ?? nothing, file: { path, name, mimeType } });
    }
    case 'edit':
    case 'delete':
    case 'reaction':
      return change(channel, content);
    default:
      return content satisfies never;
  }
}

type SendInput = {
  readonly channel: string;
  readonly text: FormattedText;
  readonly buttons?: readonly Button[] | undefined;
  readonly file?: OutgoingFile;
};
type Change = Extract<Outbound['content'], { kind: 'edit' | 'delete' | 'reaction' }>;

const nothing: FormattedText = { text: '', spans: [] };

/** Threads are channels of their own. */
export function targetOf(route: ReplyRoute): string {
  return route.thread ?? route.conversation;
}

function send({ key, route }: Outbound, { channel, text, buttons, file }: SendInput): Call {
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
      // A quoted message may be gone by now; that must not cost the answer.
      ...(quoted !== undefined && isSnowflake(quoted)
        ? { message_reference: { message_id: quoted, fail_if_not_exists: false } }
        : {}),
      ...(file === undefined ? {} : { attachments: [{ id: '0', filename: file.name }] }),
    },
    ...(file === undefined ? {} : { file }),
  };
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
      return emoji === '' ? none('there is no emoji') : { method: 'react', channel, message, emoji };
    }
    default:
      return content satisfies never;
  }
}

/** Undefined when it is longer than Discord takes. */
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

/** The interaction that this part answers, if it answers one. */
export function interactionOf({ route, content }: Outbound): string | undefined {
  return content.kind === 'text' ? interactionMessage.read(route.replyTo) : undefined;
}

/**
 * The path holds Unicode emoji as they are, with the selector that makes an emoji of a sign where Discord's own
 * list has it; a guild's as `name:id`.
 */
function reactionOf(emoji: string): string {
  const isSign = /^\p{Extended_Pictographic}$/u.test(emoji) && !/\p{Emoji_Presentation}/u.test(emoji);
  return encodeURIComponent(isSign ? `${emoji}\ufe0f` : emoji.toWellFormed());
}

/** They would end the name in a header or a path. */
const endsName = /["\\/]/g;

function none(reason: string): Call {
  return { method: 'none', reason };
}
