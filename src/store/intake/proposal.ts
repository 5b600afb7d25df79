import type { Acceptance, IgnoreReason, RefusalReason } from '#contracts/acceptance.ts';
import type { Authority } from '#contracts/outcome.ts';
import type { QueueSettings } from '#contracts/queue-settings.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { InboxContent } from '../json.ts';

/** One platform event with what the gate decided about it, ready to be stored. */
export type Proposal = {
import type { LinkStep } from '../links/link-step.ts';
import type { Anchor } from './anchors.ts';
  readonly eventKey: string;
  readonly kind: string;
  readonly conversationKey: string;
  readonly messageId?: string;
  readonly senderId: string;
  /** The event as it came, when nobody could read it; kept so that nothing is lost. */
  readonly raw?: string;
  readonly decision: Decision;
};

export type Decision =
  | { readonly kind: 'accept'; readonly item: NewItem }
  | { readonly kind: 'ignore'; readonly reason: IgnoreReason }
  | { readonly kind: 'refuse'; readonly reason: RefusalReason; readonly notice?: Notice }
  | {
      readonly kind: 'command';
      readonly command: string;
      readonly effect: CommandEffect;
      readonly lane: LaneSpec;
      readonly replies: CommandReplies;
    }
  | { readonly kind: 'edit'; readonly text: string; readonly prompt: string; readonly newId: string }
  | { readonly kind: 'delete'; readonly offer: Notice }
  | { readonly kind: 'reaction'; readonly content: InboxContent; readonly limit: number }
  | { readonly kind: 'migrate'; readonly to: string; readonly toKey: string; readonly from: string }
  | { readonly kind: 'membership'; readonly isMember: boolean };

/** A lane, as the configuration sees it; used when the row is new or nothing overrides it. */
export type LaneSpec = {
  readonly key: string;
  readonly class: string;
  readonly agentId: string;
  readonly chatKind: 'dm' | 'group';
  readonly settings: QueueSettings;
  /** Id of the session to begin, should one be needed. */
  readonly newSessionId: string;
  /** A new session begins when the last activity lies before this time (reset policy). */
  readonly resetBefore?: number;
};

export type NewItem = {
  readonly id: string;
  readonly kind: 'message' | 'command';
  readonly lane: LaneSpec;
  readonly route: ReplyRoute;
  readonly authority: Authority;
  readonly content: InboxContent;
  readonly bundle?: Bundle;
  /**
   * Whether it passes the mention gate by itself. One that does not is remembered as context, unless
   * a sibling of its bundle passes.
   */
  readonly isGated: boolean;
  /** Unmentioned messages remembered per lane. */
  readonly contextLimit: number;
  /** Told to the sender when the cap pushes something out; `{excerpt}` stands for what was dropped. */
  readonly overflow: { readonly summarized: string; readonly dropped: string; readonly refused: string };
};

/** Parts that belong together: an album, a text the client split. */
export type Bundle = {
  readonly name: string;
  /** Parts are waited for until this long after the last one, ms. */
  readonly windowMs: number;
};

export type Notice = {
  readonly route: ReplyRoute;
  readonly text: string;
  /** Said once and never again under this key; absent: once per event. */
  readonly onceKey?: string;
};

export type CommandEffect =
  | { readonly kind: 'none' }
  | { readonly kind: 'stop'; readonly isPrivileged: boolean; readonly isAll: boolean }
  | { readonly kind: 'queue'; readonly change: Partial<QueueSettings> | 'reset' }
  | { readonly kind: 'activation'; readonly value: 'mention' | 'always' };

/** What to answer, by what the effect found. Absent: nothing is said. */
export type CommandReplies = {
  readonly route: ReplyRoute;
  readonly done?: string;
  readonly nothing?: string;
  readonly notPermitted?: string;
};

export type AcceptInput = {
  readonly account: string;
  readonly epoch: number;
  readonly holder: string;
  readonly cursor?: string;
  readonly proposals: readonly Proposal[];
};

/** What the process has to set in motion after the commit; all of it is found by the sweep as well. */
export type Effects = {
  readonly wakes: { readonly laneKey: string; readonly class: string; readonly delayMs: number }[];
  /** Lanes with an active run that got a new message. */
  readonly arrivals: string[];
  readonly cancels: { readonly runId: string; readonly reason: string }[];
  readonly deliveries: string[];
  /** Rows whose attachments are to be fetched. */
  readonly fetches: string[];
};

export type AcceptOutput = { readonly acceptances: readonly Acceptance[]; readonly effects: Effects };

export function noEffects(): Effects {
  return { wakes: [], arrivals: [], cancels: [], deliveries: [], fetches: [] };
}
  readonly anchors?: readonly Anchor[];
