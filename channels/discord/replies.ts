import { MessageFlags, MessageReferenceType, MessageType } from 'discord.js';
import type { InboundMessage, Sender } from '#contracts/envelope.ts';
import { messageId } from '#contracts/ids.ts';
import type { Message } from './payload-schema.ts';

/** Known authors. */
export type Authors = {
  readonly bot: { readonly id: string };
  /** Authors of recent messages. */
  authorOf(messageId: string): Sender | undefined;
};

/** Whether the message answers the bot; where nothing says whose message it answers, which one that is. */
export function addresseeOf(
  message: Message,
  { bot, authorOf }: Authors,
): Pick<InboundMessage, 'repliesToBot' | 'repliesTo'> {
  const target = repliedTo(message);
  if (target === undefined) return { repliesToBot: false };
  const author = message.referenced_message?.author.id;
  if (author !== undefined) return { repliesToBot: author === bot.id };
  const known = authorOf(target);
  if (known !== undefined) return { repliesToBot: known.isSelf };
  return { repliesToBot: false, repliesTo: messageId(target) };
}

/** Servers of other makers leave out the type of a reply, the message that it quotes, or both. */
function repliedTo({ type, flags, channel_id: here, message_reference: reference, ...rest }: Message) {
  const isReply =
    type === MessageType.Reply ||
    (type === MessageType.Default && reference != null && (flags & MessageFlags.IsCrosspost) === 0);
  const isHere = (reference?.channel_id ?? here) === here;
  if (
    !isReply ||
    !isHere ||
    (reference?.type ?? MessageReferenceType.Default) !== MessageReferenceType.Default
  )
    return undefined;
  return rest.referenced_message?.id ?? reference?.message_id;
}
