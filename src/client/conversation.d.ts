import type { ServerFrame } from '#channel-kit/client-frames.ts';
import type { ChildView } from '#contracts/child.ts';
import type { ToolState } from '#contracts/feed.ts';
import type { TimelineActivity, TimelineItem } from '#contracts/timeline.ts';

export type ClientMessage = Partial<Omit<TimelineItem, 'messageId'>> &
  Pick<TimelineItem, 'author' | 'text' | 'state' | 'at'> & {
    readonly id: string;
    /** The position before it, if it has none of its own. */
    readonly after?: number;
    /** Why the gateway couldn't read it. */
    readonly problem?: string;
  };

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
  readonly waitsFor?: string;
  readonly summary?: { readonly state: 'started' | 'done' | 'failed'; readonly progress: number };
};

export type Conversation = {
  readonly messages: ReadonlyMap<string, ClientMessage>;
  /** The session whose positions are counted, as the gateway names it. */
  readonly of: string | undefined;
  readonly position: number;
  /** The answer so far. */
  readonly preview: Pick<TimelineItem, 'text' | 'spans'> | undefined;
  readonly run: ClientRun | undefined;
  /** The last run that has ended: nothing more of it is shown. */
  readonly endedRun: string | undefined;
  readonly queueMode: TimelineActivity['queueMode'];
  /** As the store has them, oldest first. */
  readonly children: readonly ChildView[];
  readonly isLoaded: boolean;
  readonly connection: 'connecting' | 'open' | 'lost';
};

type UnsentFrame = {
  readonly id: string;
  readonly text: string;
  readonly attachments?: readonly { readonly name: string }[];
};

export type ConversationInput =
  | { readonly kind: 'connection'; readonly state: Conversation['connection'] }
  /** A message that the gateway hasn't acknowledged; `at` in ms. */
  | { readonly kind: 'unsent'; readonly frame: UnsentFrame; readonly at: number }
  | { readonly kind: 'edited'; readonly id: string; readonly text: string }
  /** No more of the preview of a run that has ended is on its way. */
  | { readonly kind: 'preview-settled' }
  | { readonly kind: 'frame'; readonly frame: ServerFrame };

export const knownEvents: readonly string[];
export const emptyConversation: Conversation;
export function reduce(state: Conversation, input: ConversationInput): Conversation;
export function resumeFrom(state: Conversation): { readonly after: number; readonly of: string | undefined };
export function messagesInOrder(state: Conversation): readonly ClientMessage[];
export function entriesInOrder(
  state: Conversation,
): readonly (
  | { readonly message: ClientMessage; readonly child?: never }
  | { readonly child: ChildView; readonly message?: never }
)[];
export function notesOf(state: Conversation): readonly {
  readonly kind: 'summary' | 'steered' | 'waits';
  readonly text: string;
  readonly progress?: number;
}[];
export function isWorking(state: Conversation): boolean;
export function retryIdOf(state: Conversation, message: ClientMessage): string | undefined;
