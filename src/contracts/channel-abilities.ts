import type { z } from 'zod';
import type { AttachmentRef } from './attachment.ts';
import type { FormattedText } from './formatted-text.ts';
import type { MessageId } from './ids.ts';
import type { Outbound, OutboundContent } from './outbound.ts';
import type { Authority } from './outcome.ts';
import type { ReplyRoute } from './route.ts';

/** The typing indicator, shown again every `refreshMs` while a run is active. */
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
   * Says that the file is stored for good, so that the copy kept for us can be removed. For networks whose server
   * never removes one on its own. A failure costs only disk space there.
   */
  release?(ref: AttachmentRef, signal: AbortSignal): Promise<void>;
}

/** Registration of native commands, where a network has a menu of them. */
export interface CommandsAbility {
  /** Registers the commands natively; called off the critical path and only when they changed. */
  register(commands: readonly NativeCommand[], signal: AbortSignal): Promise<void>;
}

/** A command as listed in a network's menu. */
export type NativeCommand = {
  readonly name: string;
  readonly description: string;
  /** Arguments after the name, in words; absent for a command without arguments. */
  readonly argument?: string;
};

/** Search for the bot's own messages, where a network has a readable history. */
export interface LookupAbility {
  /**
   * Looks for a message on the network after an interrupted send. `since`: when it was first attempted, ms since
   * the epoch. Called only for texts and media, and only when repeating them is no longer safe. Never throws,
   * whatever the network answers.
   */
  find(outbound: Outbound, since: number, signal: AbortSignal): Promise<Found>;
}

/** The result of looking for a message whose send was interrupted. */
export type Found =
  /** The bot's messages since then with the same text, oldest first; none: it certainly never arrived. */
  | { readonly kind: 'candidates'; readonly messageIds: readonly MessageId[] }
  /** Not now. `isOutage`: the network couldn't be reached at all, so the search isn't ended by time. */
  | { readonly kind: 'later'; readonly afterMs: number; readonly reason: string; readonly isOutage?: boolean }
  /** It can't be determined. */
  | { readonly kind: 'unknown'; readonly reason: string };

/**
 * A tool that a channel offers in runs whose answers go to it, for the run's own conversation. What it does is a part of
 * the outbox, which comes back to the channel's `send` as content of kind `action`.
 */
export interface ChannelTool<Input = unknown> {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: z.ZodType<Input>;
  /** The least trusted authority that may cause it. */
  readonly authority: Authority;
  /** Returns what the call does. Pure. Throws ParleyError `invalid_input`, which the model reads. */
  act(input: Input, route: ReplyRoute): ChannelAction;
}

/** `messageId`: also `current`, the message that the turn answers, or `last`, the agent's own newest. */
export type ChannelAction = Omit<Extract<OutboundContent, { kind: 'action' }>, 'kind' | 'tool'>;

/** Checks a tool's definition against its input type, and widens the type for lists of tools. */
export function defineChannelTool<Input>(tool: ChannelTool<Input>): ChannelTool {
  // The schema has parsed the input before `act` sees it, so widening the parameter is safe.
  return tool as ChannelTool;
}

/** Linking this machine to an account, for `parley channels login`. */
export interface LoginAbility {
  /** Links this machine to the person's account. Ends after `done`; throws ParleyError when it fails. */
  login(signal: AbortSignal): AsyncIterable<LoginStep>;
}

/** One step of a login. */
export type LoginStep =
  /** Shown as a QR code, to be scanned with the network's own app. */
  { readonly kind: 'scan'; readonly uri: string } | { readonly kind: 'done'; readonly account: string };

/** Checks of a connection, for `doctor`. */
export interface ChecksAbility {
  /** Checks credentials, rights and settings on the network, for `doctor`. Changes nothing. */
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
