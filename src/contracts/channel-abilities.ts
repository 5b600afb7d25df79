import type { AttachmentRef } from './attachment.ts';
import type { FormattedText } from './formatted-text.ts';
import type { MessageId } from './ids.ts';
import type { Outbound } from './outbound.ts';
import type { ReplyRoute } from './route.ts';

/** The typing sign, shown again every `refreshMs` while a run works. */
export interface TypingAbility {
  readonly refreshMs: number;
  /** Shows "typing" once; best effort. */
  show(route: ReplyRoute, signal: AbortSignal): Promise<void>;
}

/** The network's own ephemeral preview (Telegram's drafts). Best effort; nothing to clean up. */
export interface PreviewAbility {
  draft(route: ReplyRoute, draftId: number, text: FormattedText, signal: AbortSignal): Promise<void>;
}

/** Download of attachments. */
export interface MediaAbility {
  /** Streams the bytes. Throws ParleyError `media_too_large` or `media_unavailable`. */
  fetch(ref: AttachmentRef, maxBytes: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /**
   * Says that the file is stored for good, so that a copy kept for us may go. For networks whose server
   * never removes one by itself. A failure costs disk space there and nothing else.
   */
  release?(ref: AttachmentRef, signal: AbortSignal): Promise<void>;
}

/** Registration of native commands, where a network has a menu of them. */
export interface CommandsAbility {
  /** Registers the commands natively; called off the critical path and only when they changed. */
  register(commands: readonly NativeCommand[], signal: AbortSignal): Promise<void>;
}

/** A command as a network's menu lists it. */
export type NativeCommand = {
  readonly name: string;
  readonly description: string;
  /** Arguments after the name, in words; absent for a command without arguments. */
  readonly argument?: string;
};

/** Search for messages of the bot itself, where a network has a readable history. */
export interface LookupAbility {
  /**
   * Looks for a message on the network after an interrupted send. `since`: when it was tried first, ms since
   * the epoch. Asked about texts and media only, and only when repeating them is no longer safe. Never throws
   * for what the network answers.
   */
  find(outbound: Outbound, since: number, signal: AbortSignal): Promise<Found>;
}

/** The result of looking for a message whose send was cut off. */
export type Found =
  /** The bot's messages since then with the same text, oldest first; none: it certainly never arrived. */
  | { readonly kind: 'candidates'; readonly messageIds: readonly MessageId[] }
  /** Not now. `isOutage`: the network could not be reached at all, so that looking never ends by time. */
  | { readonly kind: 'later'; readonly afterMs: number; readonly reason: string; readonly isOutage?: boolean }
  /** It cannot be told. */
  | { readonly kind: 'unknown'; readonly reason: string };

/** Linking this machine to an account, for `parley channels login`. */
export interface LoginAbility {
  /** Links this machine to the person's account. Ends after `done`; throws ParleyError when it fails. */
  login(signal: AbortSignal): AsyncIterable<LoginStep>;
}

/** One step of a login. */
export type LoginStep =
  /** To be shown as a QR code and scanned with the network's own app. */
  { readonly kind: 'scan'; readonly uri: string } | { readonly kind: 'done'; readonly account: string };

/** Checks of a connection, for `doctor`. */
export interface ChecksAbility {
  /** Looks at credentials, rights and settings on the network, for `doctor`. Changes nothing. */
  check(signal: AbortSignal): Promise<readonly ChannelCheck[]>;
}

/** One line of `doctor` about a channel. */
export type ChannelCheck = {
  readonly name: string;
  readonly result: 'ok' | 'warning' | 'failed';
  readonly detail: string;
  /** A person's next step. */
  readonly fix?: string;
};
