/** Platform event → envelope. Pure: an event that can't be read throws, and the receiver stores it raw. */
import { z } from 'zod';
import type { InboundBatch } from '#contracts/channel.ts';
import type { InboundEnvelope, InboundEvent } from '#contracts/envelope.ts';
import { eventKey, messageId, peerId } from '#contracts/ids.ts';
import { routeOf } from './ids.ts';

const base = {
  id: z.number(),
  room: z.string(),
  roomKind: z.enum(['dm', 'group']),
  thread: z.string().optional(),
  author: z.object({ id: z.string(), name: z.string(), isBot: z.boolean() }),
  at: z.number(),
};

const eventSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('message'), ...base, text: z.string(), forwardOf: z.string().optional() }),
  z.object({ kind: z.literal('edit'), ...base, text: z.string(), version: z.number() }),
  z.object({ kind: z.literal('delete'), ...base }),
  z.object({
    kind: z.literal('reaction'),
    ...base,
    emoji: z.string(),
    isRemoved: z.boolean(),
    change: z.number(),
  }),
]);

type ExampleEvent = z.infer<typeof eventSchema>;

/** Throws a ZodError if `raw` isn't a known event. */
export function envelopeOf(raw: unknown, account: string): InboundEnvelope {
  const event = eventSchema.parse(raw);
  const { author, roomKind, room, thread } = event;
  return {
    eventKey: eventKey(keyOf(event)),
    sentAt: event.at,
    route: routeOf(account, room, thread),
    chat: { kind: roomKind },
    sender: { id: peerId(author.id), name: author.name, isBot: author.isBot, isSelf: author.id === account },
    event: inboundEvent(event),
  };
}

/** The key contains kind, message and version: the same for a redelivery, another for an edit. */
function keyOf(event: ExampleEvent): string {
  const name = `${event.kind}:${event.room}:${event.id}`;
  if (event.kind === 'edit') return `${name}:${event.version}`;
  // The same person may add and remove the same emoji any number of times.
  return event.kind === 'reaction' ? `${name}:${event.author.id}:${event.emoji}:${event.change}` : name;
}

function inboundEvent(event: ExampleEvent): InboundEvent {
  const id = messageId(String(event.id));
  switch (event.kind) {
    case 'message':
      return {
        kind: 'message',
        messageId: id,
        text: event.text,
        provenance: event.forwardOf === undefined ? 'typed' : 'forwarded',
        ...(event.forwardOf !== undefined && { forwardedFrom: event.forwardOf }),
        attachments: [],
        mentionsBot: false,
        repliesToBot: false,
      };
    case 'edit':
      return { kind: 'edit', messageId: id, text: event.text, provenance: 'typed' };
    case 'delete':
      return { kind: 'delete', messageId: id };
    case 'reaction':
      return { kind: 'reaction', messageId: id, emoji: event.emoji, isRemoved: event.isRemoved };
    default:
      return event satisfies never;
  }
}

/** Reads the events in order; one that can't be read is kept raw, so that it doesn't block the others. */
export function batchOf(raws: readonly unknown[], account: string): InboundBatch {
  const events: InboundEnvelope[] = [];
  const unreadable: NonNullable<InboundBatch['unreadable']>[number][] = [];
  for (const [index, raw] of raws.entries()) {
    try {
      events.push(envelopeOf(raw, account));
    } catch (error) {
      const text = JSON.stringify(raw) ?? 'undefined';
      // The id couldn't be read, so the key is derived from the content; a redelivery gets the same one.
      unreadable.push({
        eventKey: eventKey(`unreadable:${text}:${index}`),
        raw: text,
        problem: String(error),
      });
    }
  }
  return { events, unreadable };
}
