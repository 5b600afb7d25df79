import type { ServerFrame } from '#channel-kit/client-frames.ts';
import type { ChildView } from '#contracts/child.ts';
import type { ClientEvent, ToolState } from '#contracts/feed.ts';
import type { FeedFrame } from '#contracts/feed-frame.ts';
import type { TaskActivity } from '#contracts/task.ts';
import type { TimelineActivity, TimelineItem } from '#contracts/timeline.ts';

/** A message; only stored ones have every member of a timeline's item. */
export type ClientMessage = Pick<TimelineItem, 'author' | 'text' | 'state' | 'at'> & {
  readonly [Member in Exclude<keyof TimelineItem, 'messageId'>]?: TimelineItem[Member] | undefined;
} & {
  readonly id: string;
  /** The position before it, if it has none of its own. */
  readonly after?: number | undefined;
  /** Why the gateway couldn't read it. */
  readonly problem?: string;
};

/** The run that is working, or waits for something outside. */
export type ClientRun = {
  readonly id: string;
  readonly tools: readonly {
    readonly callId: string;
    readonly name: string;
    readonly state: ToolState;
    /** So far. */
    readonly output?: string;
  }[];
  readonly wasSteered: boolean;
  readonly waitsFor?: string | undefined;
  readonly summary?: { readonly state: RunEvent<'compaction'>['state']; readonly progress: number };
};

/** All that a client shows of a conversation. */
export type Conversation = {
  readonly messages: ReadonlyMap<string, ClientMessage>;
  /** The session whose positions are counted, as the gateway names it. */
  readonly of: string | undefined;
  readonly position: number;
  /** The answer so far; `runId`: the feed tells whose it is. */
  readonly preview: (Pick<TimelineItem, 'text' | 'spans'> & { readonly runId?: string }) | undefined;
  readonly run: ClientRun | undefined;
  /** The last run that has ended: nothing more of it is shown. */
  readonly endedRun: string | undefined;
  readonly queueMode: TimelineActivity['queueMode'];
  /** As the store has them, oldest first. */
  readonly children: readonly ChildView[];
  /** As the store has them, oldest first. */
  readonly tasks: readonly TaskActivity[];
  readonly isLoaded: boolean;
  readonly connection: 'connecting' | 'open' | 'lost';
};

/** A line of a conversation; `at` in ms. */
export type Entry = { readonly at: number } & (
  | { readonly message: ClientMessage; readonly child?: never; readonly task?: never }
  | { readonly child: ChildView; readonly message?: never; readonly task?: never }
  | { readonly task: TaskActivity; readonly message?: never; readonly child?: never }
);

type UnsentFrame = {
  readonly id: string;
  readonly text: string;
  readonly attachments?: readonly { readonly name: string }[];
};

/** Input of `reduce`: a frame, or what the client did itself. */
export type ConversationInput =
  | { readonly kind: 'connection'; readonly state: Conversation['connection'] }
  /** A message that the gateway hasn't acknowledged; `at` in ms. */
  | { readonly kind: 'unsent'; readonly frame: UnsentFrame; readonly at: number }
  | { readonly kind: 'edited'; readonly id: string; readonly text: string }
  /** No more of the preview of a run that has ended is on its way. */
  | { readonly kind: 'preview-settled' }
  | { readonly kind: 'frame'; readonly frame: Frame };

/** Returns the next state; changes nothing. */
export type Step<Input> = (state: Conversation, input: Input) => Conversation;

/** The frames of a type, or all: those of a channel for clients, and those of a feed. */
export type Frame<Type = (ServerFrame | FeedFrame)['type']> = Extract<
  ServerFrame | FeedFrame,
  { readonly type: Type }
>;

/** The events of a run. */
export type RunEvent<Kind = Exclude<ClientEvent['kind'], 'changed'>> = Extract<
  ClientEvent,
  { readonly kind: Kind }
>;
