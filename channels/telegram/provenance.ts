import type { Provenance } from '#contracts/provenance.ts';
import type { Message } from './update-schema.ts';

/** Any of these shows that the message was forwarded; all but the first are from older servers. */
const forwardMarks = [
  'forward_origin',
  'forward_date',
  'forward_from',
  'forward_from_chat',
  'forward_from_message_id',
  'forward_sender_name',
  'forward_signature',
] as const;

const automationMarks = [
  'sender_business_bot',
  'guest_bot_caller_user',
  'guest_bot_caller_chat',
  'is_from_offline',
] as const;

/**
 * Says whose words these are. Telegram leaves the sender's own name on forwarded text, on the caption of a forwarded
 * file, and on what an inline bot offered. A message written as a channel may be from anyone who runs it; one written
 * as the group itself was typed by one of its administrators.
 */
export function provenanceOf(
  message: Message,
  { beginsInQuotation }: { readonly beginsInQuotation: boolean },
): Provenance {
  const { chat, sender_chat: speaker } = message;
  if (message.is_automatic_forward || chat.type === 'channel') return 'channel-post';
  if (forwardMarks.some((mark) => message[mark])) return 'forwarded';
  if (message.via_bot) return 'inline-bot';
  if (speaker !== undefined && speaker.id !== chat.id) return 'channel-post';
  if (automationMarks.some((mark) => message[mark])) return 'automated';
  if (message.story !== undefined) return 'story';
  return beginsInQuotation ? 'quoted' : 'typed';
}
