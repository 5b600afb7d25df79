import type { AttachmentRef } from './attachment.ts';
import type { FormattedText } from './formatted-text.ts';
import type { ReplyRoute } from './route.ts';

export interface TypingAbility {
  readonly refreshMs: number;
  /** Shows "typing" once; best effort. */
  show(route: ReplyRoute, signal: AbortSignal): Promise<void>;
}

/** The network's own ephemeral preview (Telegram's drafts). Best effort; nothing to clean up. */
export interface PreviewAbility {
  draft(route: ReplyRoute, draftId: number, text: FormattedText, signal: AbortSignal): Promise<void>;
}

export interface MediaAbility {
  /** Streams the bytes. Throws ParleyError `media_too_large` or `media_unavailable`. */
  fetch(ref: AttachmentRef, maxBytes: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

export interface CommandsAbility {
  /** Registers the commands natively; called off the critical path and only when they changed. */
  register(commands: readonly NativeCommand[], signal: AbortSignal): Promise<void>;
}

export type NativeCommand = {
  readonly name: string;
  readonly description: string;
  /** What may stand behind the name, in words; absent for a command without arguments. */
  readonly argument?: string;
};

export interface LoginAbility {
  /** Links this machine to the person's account. Ends after `done`; throws ParleyError when it fails. */
  login(signal: AbortSignal): AsyncIterable<LoginStep>;
}

export type LoginStep =
  /** To be shown as a QR code and scanned with the network's own app. */
  { readonly kind: 'scan'; readonly uri: string } | { readonly kind: 'done'; readonly account: string };

export interface ChecksAbility {
  /** Looks at credentials, rights and settings on the network, for `doctor`. Changes nothing. */
  check(signal: AbortSignal): Promise<readonly ChannelCheck[]>;
}

export type ChannelCheck = {
  readonly name: string;
  readonly result: 'ok' | 'warning' | 'failed';
  readonly detail: string;
  /** What a person does about it. */
  readonly fix?: string;
};
