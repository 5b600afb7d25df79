/** The event of a new message and of an edit: its content, or why it isn't read. Pure. */
import { unsupported } from '#channel-kit/event-mapping.ts';
import type { InboundEvent } from '#contracts/envelope.ts';
import { messageId } from '#contracts/ids.ts';
import type { Bot } from './ids.ts';
import { fateOf, refusalOf, smallKinds } from './inventory.ts';
import { hasContent, readMessageContent } from './message-content.ts';
import type { Message } from './update-schema.ts';

/** Reads the message. Without any content, it is refused by the name of its first field that isn't read. */
export function readContentEvent(message: Message, body: unknown, bot: Bot): InboundEvent {
  const elsewhere = unansweredPlace(message);
  if (elsewhere !== undefined) return refused(elsewhere, message);
  const content = readMessageContent(message, body, bot);
  if (hasContent(content)) return content;
  const service = presentFields(body).find((field) => fateOf(field)?.startsWith('refused: '));
  if (service !== undefined) return refused(`${service}: ${refusalOf(fateOf(service)) ?? ''}`, message);
  return content.unknownFields === undefined ? refused('message: it has no content', message) : content;
}

/** Reads the new version of a message. */
export function readEditEvent(message: Message, body: unknown, bot: Bot): InboundEvent {
  const elsewhere = unansweredPlace(message);
  if (elsewhere !== undefined) return refused(elsewhere, message);
  // A moving location is edited every few seconds, for hours; its last position is an edit like any other.
  if (message.location?.live_period != null)
    return refused('live_location: only the last position of a moving location is read', message);
  const { messageId: id, provenance, ...content } = readMessageContent(message, body, bot);
  const { text, shown, described, attachments, unknownFields } = content;
  const edit = { kind: 'edit', messageId: id, provenance } as const;
  const unread = unknownFields && { unknownFields };
  // Words that can't be read must not look as if they were taken away, nor must files.
  if ((shown ?? text) === '' && hasField(body, 'text')) return { ...edit, text, ...unread };
  return {
    ...edit,
    text,
    ...(shown !== undefined && { shown }),
    ...(described && { described }),
    ...unread,
    ...((attachments.length > 0 || !hasField(body, 'media')) && { attachments }),
  };
}

/** Returns what tells two versions of a message apart. */
export function versionOf(event: InboundEvent): string {
  if (event.kind !== 'edit') return event.kind;
  const { text, shown = text, described = [], attachments = [] } = event;
  return [shown, ...described, ...attachments.map(({ fileId, ref }) => fileId ?? ref)].join('\n');
}

/** Returns the names of the fields that aren't null or empty. */
export function presentFields(body: unknown): readonly string[] {
  if (typeof body !== 'object' || body === null) return [];
  return Object.entries(body).flatMap(([field, value]) => (value == null || value === '' ? [] : [field]));
}

/** Says whether the message has any field of this fate, even an unreadable one. */
function hasField(body: unknown, fate: 'text' | 'media'): boolean {
  return presentFields(body).some((field) => fateOf(field) === fate);
}

function refused(name: string, message: { readonly message_id: number }): InboundEvent {
  return unsupported(
    name,
    message.message_id === 0 ? {} : { messageId: messageId(String(message.message_id)) },
  );
}

/** Says why Parley can't answer there: in a channel or its direct messages, or a message shown to one person. */
function unansweredPlace({ chat, message_id: id }: Message): string | undefined {
  if (chat.is_direct_messages) return 'direct_messages: direct messages of channels aren’t answered';
  if (id === 0) return 'ephemeral_message: messages that only one person sees aren’t answered';
  return chat.type === 'channel' ? `channel: ${refusalOf(smallKinds.chat.channel)}` : undefined;
}
