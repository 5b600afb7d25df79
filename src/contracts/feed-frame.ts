/**
 * Frames to a reader of a session's feed, over server-sent events and WebSocket alike. A reader that applies every
 * frame (`src/client/conversation.js`) has what the store has, however often it reconnects: the first frame is a
 * snapshot, and so is the one after a pause in which it fell behind.
 */
import { z } from 'zod';
import { feedEventSchema } from './feed.ts';
import { timelineActivitySchema, timelineItemSchema } from './timeline.ts';

/** The message that the model is writing, so far. Each text replaces what the reader has. */
const draftSchema = z.object({
  runId: z.string(),
  assistant: z.string(),
  reasoning: z.string(),
  /** `assistant` without text that is never sent. */
  chat: z.string(),
});
/** A message that the model is writing. */
export type FeedDraft = Readonly<z.output<typeof draftSchema>>;

/** Where to resume: the frame's place in the feed, for `Last-Event-ID`. Opaque to readers. */
const id = z.string();

/** Schema of a frame. */
export const feedFrameSchema = z.discriminatedUnion('type', [
  /**
   * Replaces every message after position `after`, the activity and the draft. A reader that hasn't reached `after` drops
   * everything, because messages in between aren't included.
   */
  z.object({
    type: z.literal('snapshot'),
    id,
    /** The session's key. After a restore of the database it has a suffix, and positions start over. */
    of: z.string(),
    after: z.number(),
    items: z.array(timelineItemSchema).readonly(),
    ...timelineActivitySchema.shape,
    draft: draftSchema.exactOptional(),
  }),
  /** New messages, and known ones that have changed, by `messageId`; oldest first. */
  z.object({ type: z.literal('items'), id, of: z.string(), items: z.array(timelineItemSchema).readonly() }),
  /** Replaces the activity. */
  z.object({ type: z.literal('standing'), ...timelineActivitySchema.shape }),
  /** Has an id if it is the end of a run, which comes exactly once. */
  z.object({ type: z.literal('event'), id: id.exactOptional(), event: feedEventSchema }),
]);

/** A frame of a session's feed. */
export type FeedFrame = Readonly<z.output<typeof feedFrameSchema>>;

/** Kinds of frames and events that a reader may ask for; snapshots always come. */
export const feedKinds: readonly string[] = [
  ...['items', 'standing'],
  ...feedEventSchema.options.map(({ shape }) => shape.kind.value).filter((kind) => kind !== 'changed'),
];

/** Returns the kind of a frame. */
export function kindOf(frame: FeedFrame): string {
  return frame.type === 'event' ? frame.event.kind : frame.type;
}
