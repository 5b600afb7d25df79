import { z } from 'zod';
import { childViewSchema } from './child.ts';
import { type ClientEvent, toolStateSchema } from './feed.ts';
import { spansSchema } from './formatted-text.ts';
import { queueModes } from './queue-settings.ts';
import type { ReplyRoute } from './route.ts';
import { taskActivitySchema } from './task.ts';

/**
 * One session's messages, oldest first, and its current activity. Session-bound channels (web, terminal) read
 * it, so that a closed page misses nothing.
 */
export interface TimelineReader {
  /** Names the session `route` leads to now; positions count within it. New settings, or a restore, may change it. */
  sessionOf(route: ReplyRoute): string;
  /**
   * Returns the newest `limit` items of the session that `route` leads to; with `after`, the oldest `limit`
   * after that position. A page that isn't full is the last one.
   */
  read(
    route: ReplyRoute,
    options: { readonly after?: number; readonly limit: number },
  ): Promise<readonly TimelineItem[]>;
  /** Returns the stored current activity, which replaces a reconnecting client's state. */
  standing(route: ReplyRoute): Promise<TimelineActivity>;
  /**
   * Calls back for each change until the signal aborts, and once at the beginning when a run is parked
   * there. May miss changes: `read` is the truth.
   */
  watch(route: ReplyRoute, onEvent: (event: ClientEvent) => void, signal: AbortSignal): void;
}

/** Schema of the current activity of a session. */
export const timelineActivitySchema = z.object({
  /** Absent when no run is active. */
  run: z
    .object({
      runId: z.string(),
      /** Names of the running tools. */
      tools: z.array(z.string()).readonly(),
      /** Their calls, in the same order; absent in version 0.2.0. */
      callIds: z.array(z.string()).readonly().exactOptional(),
      /** Set when it is parked. */
      waitsFor: z.string().exactOptional(),
    })
    .exactOptional(),
  /** How it treats messages that arrive during a run; absent before the first message. */
  queueMode: z.enum(queueModes).exactOptional(),
  /** Sub-agents of the conversation, oldest first; absent when it has none. */
  children: z.array(childViewSchema).readonly().exactOptional(),
  /** Tasks that its agents coordinate, open or ended within the last hour, oldest first; absent when there are none. */
  tasks: z.array(taskActivitySchema).readonly().exactOptional(),
});

/** The current activity of a session. */
export type TimelineActivity = Readonly<z.output<typeof timelineActivitySchema>>;

const timelineStep = z.object({ name: z.string(), state: toolStateSchema.exclude(['started']) });
/** A tool call that has ended. */
export type TimelineStep = Readonly<z.output<typeof timelineStep>>;

/** Schema of a file that the agent has sent. */
export const sentFileSchema = z.object({
  /** As people see it: without characters that act instead of being displayed. */
  name: z.string(),
  /** By its first bytes. */
  mimeType: z.string(),
  /** The name of its copy in the media folder, for clients on this machine. */
  stored: z.string(),
  /** Absent once the copy is no longer kept. */
  sizeBytes: z.int().exactOptional(),
});

/** A file that the agent has sent. */
export type SentFile = Readonly<z.output<typeof sentFileSchema>>;

/** Schema of one message of a session. */
export const timelineItemSchema = z.object({
  /** Grows with time; a client asks for items after the last position it has. */
  position: z.number(),
  at: z.number(),
  author: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('person'), name: z.string() }),
    z.object({ kind: z.literal('agent') }),
    z.object({ kind: z.literal('notice') }),
  ]),
  /** The platform's or client's id of the message; for an answer the receipt of its part. */
  messageId: z.string(),
  channel: z.string(),
  text: z.string(),
  /** The formatting of `text`; absent where `text` is as it was written. */
  spans: spansSchema.exactOptional(),
  /** On the first part of an answer: the whole answer as the model wrote it, where that isn't `text`. */
  markdown: z.string().exactOptional(),
  /** `messageId` of the message that it quotes. */
  replyTo: z.string().exactOptional(),
  /** Choices under the message; absent once one was made. */
  buttons: z
    .array(z.object({ id: z.string(), label: z.string(), command: z.string() }))
    .readonly()
    .exactOptional(),
  /** For a person's message: waiting, taken, delivering (answered, and the answer is being sent), answered … */
  state: z.string(),
  /** Why its run failed, in the words of the model's provider if that refused. */
  reason: z.string().exactOptional(),
  /** Names of the files that came with a person's message; a missing file's name is followed by the reason. */
  files: z.array(z.string()).readonly().exactOptional(),
  /** The file that the agent's message carries; `text` is its caption. `/api/file` serves it to those who may read this. */
  file: sentFileSchema.exactOptional(),
  /** On the first part of an answer: the tool calls since the previous answer. */
  steps: z.array(timelineStep).readonly().exactOptional(),
});

/** One message of a session. */
export type TimelineItem = Readonly<z.output<typeof timelineItemSchema>>;
