/**
 * Frames between the gateway and a client of a session-bound channel: one JSON object per WebSocket message or
 * line. Each frame with an effect carries an `id` chosen by the client and is resent until its `ack` arrives;
 * the same id is stored once.
 */
import { z } from 'zod';
import { type Acceptance, reasonOf } from '#contracts/acceptance.ts';
import { clientEventSchema } from '#contracts/feed.ts';
import { spansSchema } from '#contracts/formatted-text.ts';
import { sentFileSchema, timelineActivitySchema, timelineItemSchema } from '#contracts/timeline.ts';
import { cleanText } from './clean-text.ts';
import { noId } from './no-id.ts';

/** Longest text of one message, in UTF-16 code units. */
export const maxTextLength = 32_000;
/** The problem with a longer text, for its sender. */
export const tooLongText = `A message can have at most ${maxTextLength} characters.`;
/** Longest frame in bytes; a text of maximum length fits even if JSON escapes all its characters. */
export const maxFrameBytes = 256 * 1024;
/** Suffix of the file that contains a socket's real path when the usual one is too long for the system. */
export const socketPointerSuffix = '.path';

const text = z.string().max(maxTextLength).transform(cleanText);

const id = z.uuid();
const conversation = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);

const attachment = z.object({
  ref: id,
  name: z.string().min(1).max(255).transform(cleanText),
  mimeType: z.string().max(100).transform(cleanText).exactOptional(),
  sizeBytes: z.int().nonnegative(),
});

/** Schema of a client's frames. */
export const clientFrameSchema = z.discriminatedUnion('type', [
  /** The first frame, and later a request for the items after a position of the session `of`. */
  z.object({
    type: z.literal('hello'),
    conversation: z.preprocess(noId, conversation.default('main')),
    after: z.int().nonnegative().optional(),
    of: z.string().max(2_048).optional(),
    /** Kinds of events that the client knows besides those of version 0.2.0, which rejects any other. */
    events: z.array(z.string().max(64)).max(32).exactOptional(),
  }),
  /** `attachments` name files uploaded before; only channels that accept files read them. */
  z.object({ type: z.literal('send'), id, text, attachments: z.array(attachment).max(10).exactOptional() }),
  z.object({ type: z.literal('stop'), id }),
  /** Gives message `message` the new `text`. */
  z.object({ type: z.literal('edit'), id, message: id, text }),
  z.object({ type: z.literal('delete'), id, message: id }),
  /** Presses a button of the item `message`. */
  z.object({ type: z.literal('press'), id, message: z.string().max(256), button: z.string().max(64) }),
]);

/** A frame from a client. */
export type ClientFrame = z.infer<typeof clientFrameSchema>;
export type HelloFrame = Extract<ClientFrame, { type: 'hello' }>;
/** The frames that reach the intake. */
export type EffectFrame = Exclude<ClientFrame, HelloFrame>;

/** Schema of the gateway's frames, for clients. */
export const serverFrameSchema = z.discriminatedUnion('type', [
  /** The gateway has stored the result of frame `id`, so it needn't be sent again. */
  z.object({
    type: z.literal('ack'),
    id: z.string(),
    state: z.string(),
    reason: z.string().exactOptional(),
    /** The result of a press, as text for the person who pressed. */
    text: z.string().exactOptional(),
  }),
  /**
   * Oldest first. An item with a known `messageId` replaces the known one, since its state may have changed. `of` names
   * their session; items of any other session are no longer shown.
   */
  z.object({
    type: z.literal('items'),
    of: z.string().exactOptional(),
    items: z.array(timelineItemSchema).readonly(),
  }),
  z.object({ type: z.literal('event'), event: clientEventSchema }),
  /**
   * Follows the last page of items and replaces all that the client knows about current activity. `hellos`: this many
   * hellos of the connection are now answered, with everything stored before them.
   */
  z.object({ type: z.literal('standing'), hellos: z.int(), ...timelineActivitySchema.shape }),
  /** The answer so far, formatted; replaces the previous one. */
  z.object({ type: z.literal('preview'), text: z.string(), spans: spansSchema }),
  /** A delivered part. The item with the same `messageId` follows later and replaces it. */
  z.object({
    type: z.literal('message'),
    messageId: z.string(),
    text: z.string(),
    spans: spansSchema,
    at: z.number(),
    file: sentFileSchema.exactOptional(),
  }),
  z.object({ type: z.literal('edited'), messageId: z.string(), text: z.string(), spans: spansSchema }),
  z.object({ type: z.literal('deleted'), messageId: z.string() }),
  /** `retry: true`: send frame `id` again later. `retry: false`: sending it again wouldn't help. */
  z.object({
    type: z.literal('problem'),
    code: z.enum(['invalid_frame', 'hello_first', 'too_long', 'unavailable']),
    message: z.string(),
    retry: z.boolean(),
    id: z.string().exactOptional(),
  }),
]);

/** A frame to a client. */
export type ServerFrame = z.infer<typeof serverFrameSchema>;
export type ProblemFrame = Extract<ServerFrame, { type: 'problem' }>;

/** Returns the answer to frame `id` once the intake has stored it. */
export function ackOf(id: string, acceptance: Acceptance): ServerFrame {
  const reason = reasonOf(acceptance);
  return {
    type: 'ack',
    id,
    state: stateOf(acceptance),
    ...(reason === undefined ? {} : { reason }),
    ...(acceptance.kind === 'pressed' ? { text: acceptance.text } : {}),
  };
}

/**
 * Returns the state. A repeated frame gets its original result again, because the first answer may be lost and only
 * accepted frames are in the timeline.
 */
function stateOf(acceptance: Acceptance): string {
  if (acceptance.kind !== 'duplicate' || acceptance.of.outcome === 'accepted') return acceptance.kind;
  return acceptance.of.outcome;
}
