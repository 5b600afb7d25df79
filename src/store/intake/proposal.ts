import type { Acceptance, IgnoreReason, RefusalReason } from '#contracts/acceptance.ts';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { Provenance } from '#contracts/envelope.ts';
import type { AskedCommand } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { GroupRequest } from '../access/admit.ts';
import type { PairingRequest } from '../access/pairing.ts';
import type { Decider, SenderRole } from '../access/sender-roles.ts';
import type { Effects } from '../base/effects.ts';
import type { InboxContent } from '../base/json.ts';
import type { LaneSpec } from '../base/keys.ts';
import type { NewItem } from '../items/enqueue-item.ts';
import type { SeenLinks } from '../links/read-links.ts';
import type { Anchor } from './event.ts';

/** One platform event with intake's decision about it, ready to be stored. */
export type Proposal = {
  readonly eventKey: string;
  readonly kind: string;
  readonly conversationKey: string;
  readonly messageId?: string;
  readonly senderId: string;
  /**
   * The sender's access when intake decided; checked again in the transaction. Absent if no access was needed.
   */
  readonly role?: SenderRole;
  /** The original event, if it couldn't be parsed; stored so that nothing is lost. */
  readonly raw?: string;
  /** Names what the event had instead of content that Parley can read, for `why`. */
  readonly detail?: string;
  /** Fingerprint of a message or an edit: `fingerprintOf`. */
  readonly fingerprint?: string;
  readonly decision: Decision;
};

/** Intake's decision about one event. */
export type Decision =
  /** `notice` is sent only if the message is accepted, not if it is only remembered. */
  | { readonly kind: 'accept'; readonly item: NewItem; readonly notice?: Notice }
  | { readonly kind: 'ignore'; readonly reason: IgnoreReason }
  | {
      readonly kind: 'refuse';
      readonly reason: RefusalReason;
      readonly notice?: Notice;
      /** Present if a stranger with a pending pairing request has changed a message. */
      readonly kept?: KeptChange;
    }
  /** The sender is refused, and shown a code with which an owner can approve them. */
  | { readonly kind: 'pair'; readonly request: PairingRequest }
  /** The message is refused, and the owner is asked whether to answer in the group. */
  | { readonly kind: 'ask-group'; readonly request: GroupRequest }
  /** A pressed button; `data` is its payload. */
  | { readonly kind: 'press'; readonly data: string; readonly by: Decider }
  | {
      readonly kind: 'command';
      readonly command: string;
      /** Made by the command's `load` for its step. */
      readonly input: unknown;
      readonly asked?: AskedCommand | undefined;
      readonly lane: LaneSpec;
      readonly route: ReplyRoute;
    }
  | EditDecision
  | UnreadEditDecision
  /**
   * `{message}` in a note stands for the message that it is about. `isVouched`: the network itself removed the message;
   * otherwise only its own sender may delete it. `route`: where a stop is offered.
   */
  | { readonly kind: 'delete'; readonly isVouched?: true; readonly note: string; readonly route: ReplyRoute }
  | { readonly kind: 'reaction'; readonly content: InboxContent; readonly limit: number }
  | { readonly kind: 'migrate'; readonly to: string; readonly toKey: string; readonly from: string }
  | { readonly kind: 'membership'; readonly isMember: boolean };

/** New words for a message. */
export type EditDecision = {
  readonly kind: 'edit';
  readonly text: string;
  readonly prompt: string;
  /** The new words framed as data, for a message that wasn't its sender's own; absent if `prompt` does that already. */
  readonly dataPrompt?: string;
  /** Origin of the new words; absent if the sender typed them. */
  readonly provenance?: Provenance;
  /** Content other than words as the model reads it, which `prompt` already contains. */
  readonly tail?: string;
  /** All files of the new version; absent: they stay. */
  readonly attachments?: readonly AttachmentRef[];
  /** Note for the transcript, once the message has been answered. */
  readonly note: string;
  readonly newId: string;
};

/** An edit that can't be read: the earlier version stays. */
export type UnreadEditDecision = {
  readonly kind: 'unread-edit';
  /** Follows the earlier version wherever that is still to be read. */
  readonly remark: string;
  /** Note for the transcript, once the message has been answered. */
  readonly note: string;
  readonly notice?: Notice;
  readonly newId: string;
};

/** Change to the message kept for a stranger until their approval, if the event is about that message. */
export type KeptChange = EditDecision | 'deleted';

/** A text that a sender is sent because of an event. */
export type Notice = {
  readonly route: ReplyRoute;
  readonly text: string;
  /** The notice is sent only once under this key; absent: once per event. */
  readonly onceKey?: string;
};

/** One batch of events, with intake's decision about each. */
export type AcceptInput = {
  readonly account: string;
  readonly epoch: number;
  readonly holder: string;
  readonly cursor?: string;
  readonly anchors?: readonly Anchor[];
  readonly proposals: readonly Proposal[];
  /** The links when intake decided; checked again in the transaction. */
  readonly links?: SeenLinks | undefined;
};

export type AcceptOutput = { readonly acceptances: readonly Acceptance[]; readonly effects: Effects };
