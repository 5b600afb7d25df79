import type { ChildView } from './child.ts';
import type { Span } from './formatted-text.ts';
import type { Button } from './outbound.ts';
import type { QueueMode } from './queue-settings.ts';
import type { ReplyRoute } from './route.ts';

/**
 * One session's messages, oldest first, and its current activity. Session-bound channels (web, terminal) read
 * it, so that a page that was closed misses nothing.
 */
export interface TimelineReader {
  /** Names the session that `route` leads to now: positions count within it. A change of settings, or a restore, may lead to another. */
  sessionOf(route: ReplyRoute): string;
  /**
   * The newest `limit` items of the session that `route` leads to; with `after`, the oldest `limit` that
   * came after that position. A page that is not full is the last one.
   */
  read(
    route: ReplyRoute,
    options: { readonly after?: number; readonly limit: number },
  ): Promise<readonly TimelineItem[]>;
  /** Stored current activity: replaces what a reconnecting client knew. */
  standing(route: ReplyRoute): Promise<TimelineStanding>;
  /**
   * Calls back for each change until the signal aborts, and once at the beginning when a run is parked
   * there. May miss some: `read` is the truth.
   */
  watch(route: ReplyRoute, onEvent: (event: TimelineEvent) => void, signal: AbortSignal): void;
}

/** The current activity of a session. */
export type TimelineStanding = {
  /** Absent when nothing is worked on. */
  readonly run?: {
    readonly runId: string;
    /** Names of the tools at work. */
    readonly tools: readonly string[];
    /** Set when it is parked. */
    readonly waitsFor?: string;
  };
  /** How it treats what arrives while it works; absent before the first message. */
  readonly queueMode?: QueueMode;
  /** Sub-agents of the conversation, oldest first; absent when it has none. */
  readonly children?: readonly ChildView[];
};

/** One message of a session. */
export type TimelineItem = {
  /** Grows with time; a client asks for what came after the last one it has. */
  readonly position: number;
  readonly at: number;
  readonly author:
    | { readonly kind: 'person'; readonly name: string }
    | { readonly kind: 'agent' }
    | { readonly kind: 'notice' };
  /** The platform's or client's id of the message; for an answer the receipt of its part. */
  readonly messageId: string;
  readonly channel: string;
  readonly text: string;
  /** The formatting of `text`; absent where `text` is as it was written. */
  readonly spans?: readonly Span[];
  /** Choices under the message; absent once one was made. */
  readonly buttons?: readonly Button[];
  /** For a person's message: waiting, taken, delivering (answered, and the answer is on its way), answered … */
  readonly state: string;
  /** Names of the files that came with a person's message; of one that isn't there, with the reason behind it. */
  readonly files?: readonly string[];
  /** On the first part of an answer: the tool calls since the answer before. */
  readonly steps?: readonly TimelineStep[];
};

/** A tool call that has ended. */
export type TimelineStep = { readonly name: string; readonly state: Exclude<ToolState, 'started'> };

/** A change in a session that its open clients see at once. */
export type TimelineEvent =
  /** Something was stored: read again from your position. */
  | { readonly kind: 'changed' }
  /** The answer so far, replacing what was shown. Never holds a prefix of a silent token. */
  | { readonly kind: 'preview'; readonly runId: string; readonly text: string }
  | {
      readonly kind: 'tool';
      readonly runId: string;
      readonly name: string;
      readonly state: ToolState;
    }
  | { readonly kind: 'run'; readonly runId: string; readonly state: 'started' | 'steered' | 'ended' }
  /** The run waits for something outside, an approval say; it goes on with `started`. */
  | { readonly kind: 'parked'; readonly runId: string; readonly reason: string };

/** `skipped`: it never started, since a new message changed the course of its run. */
export type ToolState = 'started' | 'done' | 'failed' | 'skipped';
