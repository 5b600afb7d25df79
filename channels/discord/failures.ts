/**
 * Decides what became of a call that went wrong. Refusals (4xx) were not applied. A request that never
 * left was not. Everything else is unknown for a send, which core repeats under the same nonce, and safe
 * to repeat for edits, deletes and reactions.
 */
import { RESTJSONErrorCodes } from 'discord.js';
import { noAnswerFrom } from '#channel-kit/network-fault.ts';
import { askedWaitMs, shortestGapMs } from '#channel-kit/remote-number.ts';
import { ambiguous, failed, isRepeatable, sent, unanswered } from '#channel-kit/send-result.ts';
import type { OutboundContent, SendFailure, SendResult } from '#contracts/outbound.ts';

export type Refusal = {
  readonly status: number;
  /** Discord's own code; undefined when a proxy or Discord's edge answered, which passes. */
  readonly code: number | undefined;
  readonly reason: string;
  /** As asked, at least a second, ms; only of rate limits, which may also be kept before anything was sent. */
  readonly retryAfterMs?: number;
};

/** Reads the refusal out of what the REST library throws; undefined for anything else. */
export function readRefusal(error: unknown): Refusal | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('retryAfter' in error && 'timeToReset' in error && typeof error.retryAfter === 'number') {
    const retryAfterMs = Math.max(shortestGapMs, askedWaitMs(error.retryAfter) ?? 0);
    return { status: 429, code: undefined, reason: 'Discord’s rate limit is reached', retryAfterMs };
  }
  if (!('status' in error) || typeof error.status !== 'number') return undefined;
  const { status } = error;
  const named = 'code' in error && typeof error.code === 'number' ? error.code : undefined;
  const code = isUnrouted(status, named) ? undefined : named;
  return { status, code, reason: `${status} ${error.message}`.slice(0, 300) };
}

/** Something before Discord has answered, a proxy or its edge: for everybody and for now, or for what this call says. */
export function isTurnedAway({ status, code }: Refusal): boolean {
  return code === undefined && status < 500 && status !== 429;
}

/** Discord's edge, which names no reason: what is gone for good has a code of its own. */
function isUnrouted(status: number, code: number | undefined): boolean {
  if (code === RESTJSONErrorCodes.CloudflareIsBlockingYourRequest) return true;
  return code === RESTJSONErrorCodes.GeneralError && (status === 403 || status === 404);
}

export type Attempt = {
  readonly content: OutboundContent;
  readonly isThread: boolean;
  /** The caller stopped waiting. */
  readonly isAborted: boolean;
};

/** The result of a call that threw. */
export function failureOf(error: unknown, attempt: Attempt): SendResult {
  const refusal = readRefusal(error);
  if (refusal !== undefined) return refused(refusal, attempt);
  return unanswered(error, 'Discord', attempt);
}

/** A proxy's ban (Cloudflare) ends by itself, but not soon. */
export const proxyPauseMs = 60_000;
/** A proxy's limit of what it passes on. */
const tooLarge = 413;

function refused({ status, code, reason, retryAfterMs }: Refusal, attempt: Attempt): SendResult {
  if (status === 429) return { kind: 'retry', afterMs: retryAfterMs ?? proxyPauseMs, reason };
  if (status >= 500) return ambiguous(attempt.content, reason);
  if (status === 401) return failed('unauthorised', reason);
  if (code === undefined && status === tooLarge) return failed('rejected', reason);
  if (code === undefined) return { kind: 'retry', afterMs: proxyPauseMs, reason };
  if (isAlreadySo(attempt.content, code)) return sent();
  return failed(failureKind(code, attempt), reason);
}

/** A change that Discord refuses because it is already in force has succeeded. */
function isAlreadySo({ kind }: OutboundContent, code: number): boolean {
  return kind === 'delete' && code === RESTJSONErrorCodes.UnknownMessage;
}

type FailureKind = Exclude<SendFailure['kind'], 'migrated'>;

function failureKind(code: number, { content, isThread }: Attempt): FailureKind {
  switch (code) {
    case RESTJSONErrorCodes.UnknownChannel:
    case RESTJSONErrorCodes.InvalidActionOnArchivedThread:
    case RESTJSONErrorCodes.ThreadLocked:
      if (!isThread) return 'unreachable';
      // A message in place of a change wakes an archived thread.
      return isRepeatable(content) ? 'rejected' : 'thread-gone';
    case RESTJSONErrorCodes.MissingAccess:
    case RESTJSONErrorCodes.CannotSendMessagesToThisUser:
    case RESTJSONErrorCodes.CannotSendMessagesToThisUserDueToHavingNoMutualGuilds:
    case RESTJSONErrorCodes.CannotSendMessagesInNonTextChannel:
      // The conversation is the channel above, and within reach.
      return isThread ? 'rejected' : 'unreachable';
    case RESTJSONErrorCodes.MissingPermissions:
      // It may still speak where it may not react or change.
      return content.kind === 'text' && !isThread ? 'unreachable' : 'rejected';
    case RESTJSONErrorCodes.InvalidFormBodyOrContentType:
      return hasSpans(content) ? 'markup' : 'rejected';
    default:
      return 'rejected';
  }
}

/** The quoted message is the trouble: a system message, or a history that the bot may not read. */
export function isQuoteRefused(error: unknown): boolean {
  const code = readRefusal(error)?.code;
  if (code === RESTJSONErrorCodes.CannotReplyWithoutPermissionToReadMessageHistory) return true;
  return (
    code === RESTJSONErrorCodes.InvalidFormBodyOrContentType &&
    error instanceof Error &&
    /message_reference|REPLIES_/.test(error.message)
  );
}

/** An interaction whose token has run out or is not known. */
export function isInteractionGone(error: unknown): boolean {
  const refusal = readRefusal(error);
  return refusal?.code !== undefined && (refusal.status === 404 || refusal.status === 401);
}

function hasSpans(content: OutboundContent): boolean {
  return (content.kind === 'text' || content.kind === 'edit') && content.text.spans.length > 0;
}

/** Why a call went wrong, in words of Discord's or of the network's; for logs and faults. */
export function reasonOf(error: unknown): string {
  return readRefusal(error)?.reason ?? networkReason(error);
}

/** For logs and results; see `noAnswerFrom`. */
export function networkReason(error: unknown): string {
  return noAnswerFrom('Discord', error);
}
