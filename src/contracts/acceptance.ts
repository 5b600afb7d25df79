import type { InboxId, SessionKey } from './ids.ts';

/** Intake's decision on one inbound event. Each is counted and stored in the ledger. */
export type Acceptance =
  | { readonly kind: 'accepted'; readonly inboxId: InboxId; readonly sessionKey: SessionKey }
  | { readonly kind: 'duplicate'; readonly of: KnownOutcome }
  /** `keepsFiles`: a later message that calls the agent may bring the files of this one along. */
  | { readonly kind: 'ignored'; readonly reason: IgnoreReason; readonly keepsFiles?: true }
  /** `keepsFiles`: the message is answered once its sender is admitted, and its files are fetched only then. */
  | { readonly kind: 'refused'; readonly reason: RefusalReason; readonly keepsFiles?: true }
  | { readonly kind: 'command'; readonly command: string }
  /** Stored with the other items of its bundle until one of them passes the gate or their window ends. */
  | { readonly kind: 'held' }
  /** An edit, delete or reaction that changed or annotated a known message. */
  | { readonly kind: 'noted'; readonly effect: string }
  /** A press of a button. Channels show the text only to the person who pressed it. */
  | { readonly kind: 'pressed'; readonly result: PressResult; readonly text: string };

/** The ledger entry of an earlier event: the kind of its acceptance, and the reason. */
export type KnownOutcome = { readonly outcome: string; readonly reason: string | undefined };

/** The result of a press: it decided, came too late, came from somebody who may not decide, or matches no question. */
export type PressResult = 'approved' | 'denied' | 'late' | 'foreign' | 'unknown';

/** Why intake ignored an event that needs no answer; stored in its ledger entry. */
export type IgnoreReason =
  | 'own-message'
  | 'bot-message'
  | 'not-mentioned'
  | 'empty'
  | 'unknown-message'
  /** A command not addressed to us, in a group that may have several bots. */
  | 'for-other-bot'
  /** A hook dropped it, or has answered it itself. */
  | 'dropped-by-hook'
  | 'claimed-by-hook'
  /** Only its author may change it. */
  | 'not-the-author'
  | 'unchanged'
  | 'membership'
  | 'migrated';

/** Why intake refused an event; stored in its ledger entry. */
export type RefusalReason =
  | 'dm-disabled'
  | 'dm-not-allowed'
  | 'dm-not-paired'
  | 'pairing-full'
  | 'group-disabled'
  | 'group-not-allowed'
  | 'sender-not-allowed'
  | 'unsupported-event'
  | 'unreadable'
  | 'queue-full'
  | 'rate-limited'
  | 'not-permitted';

/** Returns why an event was not accepted, or what it did instead; undefined when there is nothing to say. */
export function reasonOf(acceptance: Acceptance): string | undefined {
  switch (acceptance.kind) {
    case 'ignored':
    case 'refused':
      return acceptance.reason;
    case 'command':
      return acceptance.command;
    case 'noted':
      return acceptance.effect;
    case 'pressed':
      return acceptance.result;
    case 'duplicate':
      return acceptance.of.reason;
    case 'accepted':
    case 'held':
      return undefined;
    default:
      return acceptance satisfies never;
  }
}
