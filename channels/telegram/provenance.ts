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

/**
 * Says whose words these are. Telegram leaves the sender's own name on forwarded text, on the caption of a forwarded
 * file, and on what an inline bot offered. A message written as a channel may be from anyone who runs it; one written
 * as the group itself was typed by one of its administrators.
 */
export function provenanceOf(message: Message): Provenance {
  const { chat, sender_chat: speaker } = message;
  if (message.is_automatic_forward === true || chat.type === 'channel') return 'channel-post';
  if (forwardMarks.some((mark) => message[mark] !== undefined)) return 'forwarded';
  if (message.via_bot !== undefined) return 'inline-bot';
  if (speaker !== undefined && speaker.id !== chat.id) return 'channel-post';
  const isAutomated =
    message.sender_business_bot !== undefined ||
    message.guest_bot_caller_user !== undefined ||
    message.guest_bot_caller_chat !== undefined ||
    message.is_from_offline === true;
  if (isAutomated) return 'automated';
  return beginsInQuotation(message) ? 'quoted' : 'typed';
}

const quotations = new Set(['blockquote', 'expandable_blockquote']);

function beginsInQuotation({ text, entities, caption, caption_entities: inCaption }: Message): boolean {
  const first = (text ?? caption ?? '').search(/\S/);
  return (entities ?? inCaption ?? []).some(
    ({ type, offset, length }) => quotations.has(type) && offset <= first && first < offset + length,
  );
}
