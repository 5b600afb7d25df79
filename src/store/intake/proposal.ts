import type { Acceptance, IgnoreReason, RefusalReason } from '#contracts/acceptance.ts';
import type { Provenance } from '#contracts/provenance.ts';
import type { QueueSettings } from '#contracts/queue-settings.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Approval, Showing } from '../access/approve-pairing.ts';
import type { PairingRequest } from '../access/request-pairing.ts';
import type { Standing } from '../access/standing.ts';
import type { Effects } from '../base/effects.ts';
import type { InboxContent } from '../base/json.ts';
import type { LaneSpec } from '../base/lane-spec.ts';
import type { Actor } from '../items/actor.ts';
import type { ItemChange } from '../items/item-change.ts';
import type { NewItem } from '../items/new-item.ts';
import type { LinkStep } from '../links/link-step.ts';
import type { SeenLinks } from '../links/read-links.ts';
import type { Anchor } from './anchors.ts';

/** One platform event with what the gate decided about it, ready to be stored. */
export type Proposal = {
  readonly eventKey: string;
  readonly kind: string;
  readonly conversationKey: string;
  readonly messageId?: string;
  readonly senderId: string;
  /**
   * The sender's access when intake decided; checked again in the transaction. Absent where no access was
   * needed.
   */
  readonly standing?: Standing;
  /** The event as it came, when nobody could read it; kept so that nothing is lost. */
  readonly raw?: string;
  /** Fingerprint of a message or an edit: `fingerprintOf`. */
  readonly fingerprint?: string;
  readonly decision: Decision;
};

export type Decision =
  | { readonly kind: 'accept'; readonly item: NewItem }
  | { readonly kind: 'ignore'; readonly reason: IgnoreReason }
  | { readonly kind: 'refuse'; readonly reason: RefusalReason; readonly notice?: Notice }
  /** Refused, and shown a code by which an owner may let the sender in. */
  | { readonly kind: 'pair'; readonly request: PairingRequest }
  | {
      readonly kind: 'command';
      readonly command: string;
      readonly effect: CommandEffect;
      readonly lane: LaneSpec;
      readonly replies: CommandReplies;
    }
  | {
      readonly kind: 'link';
      readonly step: LinkStep;
      readonly lane: LaneSpec;
      readonly route: ReplyRoute;
    }
  | {
      readonly kind: 'edit';
      readonly text: string;
      readonly prompt: string;
      /** The new words as data, for a message that was not its sender's own; absent when `prompt` has them so. */
      readonly dataPrompt?: string;
      /** Origin of the new words; absent when the sender typed them. */
      readonly provenance?: Provenance;
      /** For the transcript, once the message has been answered. */
      readonly note: string;
      readonly newId: string;
    }
  /**
   * `{message}` in a note stands for the message that it is about. `isVouched`: the network has taken it
   * away; otherwise only its own sender may.
   */
  | { readonly kind: 'delete'; readonly isVouched?: true; readonly note: string; readonly offer: Notice }
  | { readonly kind: 'reaction'; readonly content: InboxContent; readonly limit: number }
  | { readonly kind: 'migrate'; readonly to: string; readonly toKey: string; readonly from: string }
  | { readonly kind: 'membership'; readonly isMember: boolean };

export type Notice = {
  readonly route: ReplyRoute;
  readonly text: string;
  /** Said once and never again under this key; absent: once per event. */
  readonly onceKey?: string;
};

export type CommandEffect =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'stop';
      readonly isPrivileged: boolean;
      readonly isAll: boolean;
      /** For a person with linked accounts: all of them, and the lane they wrote in before the link. */
      readonly linked?: { readonly people: readonly string[]; readonly formerLane: string };
    }
  | { readonly kind: 'queue'; readonly change: Partial<QueueSettings> | 'reset' }
  /** To what waits in the lane. */
  | { readonly kind: 'item'; readonly actor: Actor; readonly change: ItemChange }
  | { readonly kind: 'activation'; readonly value: 'mention' | 'always' }
  | { readonly kind: 'pair-approve'; readonly approval: Approval }
  | ({ readonly kind: 'pair-show' } & Showing)
  | { readonly kind: 'pair-revoke'; readonly ref: string };

/** Answers by the effect's result. Absent: no answer. */
export type CommandReplies = { readonly route: ReplyRoute } & {
  /** `{name}` stands for what the effect found under that name: `{who}` it concerned, a `{mode}`. */
  readonly [Found in CommandFinding]?: string;
};

/** The last five are of a change to what waits. */
export type CommandFinding =
  | 'done'
  | 'nothing'
  | 'notPermitted'
  | 'limited'
  | 'steered'
  | 'working'
  | 'ended'
  | 'kept'
  | 'behind';

export type AcceptInput = {
  readonly account: string;
  readonly epoch: number;
  readonly holder: string;
  readonly cursor?: string;
  readonly anchors?: readonly Anchor[];
  readonly proposals: readonly Proposal[];
  /** Links when intake decided; checked again in the transaction. */
  readonly links?: SeenLinks | undefined;
};

export type AcceptOutput = { readonly acceptances: readonly Acceptance[]; readonly effects: Effects };
