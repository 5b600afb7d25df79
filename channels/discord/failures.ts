/**
 * Decides the outcome of a failed call. Refusals (4xx) and requests that never left weren't applied. Otherwise the
 * outcome of a send is unknown, and core repeats it with the same nonce; edits, deletes and reactions are safe to
 * repeat.
 */
import { RESTJSONErrorCodes } from 'discord.js';
import { noAnswerFrom } from '#channel-kit/network-fault.ts';
import { askedWaitMs, shortestGapMs } from '#channel-kit/remote-number.ts';
import { ambiguous, failed, isRepeatable, sent, unanswered } from '#channel-kit/send-result.ts';
import type { OutboundContent, SendFailure, SendResult } from '#contracts/outbound.ts';

export type Refusal = {
  readonly status: number;
  /** Discord's own code; undefined if a proxy or Discord's edge answered, which is temporary. */
  readonly code: number | undefined;
  readonly reason: string;
  /** The requested wait, at least a second, ms; only for rate limits, which the library may enforce before sending. */
  readonly retryAfterMs?: number;
};

/** Reads the refusal from an error that the REST library threw; undefined for anything else. */
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

/**
 * Says whether something before Discord answered, a proxy or its edge. It may turn away everybody for now, or only this
 * call, because of its content.
 */
export function isBlockedUpstream({ status, code }: Refusal): boolean {
  return code === undefined && status < 500 && status !== 429;
}

/** Says whether Discord's edge answered, which gives no reason; anything permanently gone has its own code. */
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

/** Returns the result of a call that threw. */
export function failureOf(error: unknown, attempt: Attempt): SendResult {
  const refusal = readRefusal(error);
  if (refusal !== undefined) return refused(refusal, attempt);
  return unanswered(error, 'Discord', attempt);
}

/** A proxy's ban (Cloudflare) ends on its own, but not soon. */
export const proxyPauseMs = 60_000;
/** The status of a proxy that limits the size of requests. */
const tooLarge = 413;

function refused({ status, code, reason, retryAfterMs }: Refusal, attempt: Attempt): SendResult {
  if (status === 429) return { kind: 'retry', afterMs: retryAfterMs ?? proxyPauseMs, reason };
  if (status >= 500) return ambiguous(attempt.content, reason);
  if (status === 401) return failed('unauthorised', reason);
  if (code === undefined && status === tooLarge) return failed('rejected', reason);
  if (code === undefined) return { kind: 'retry', afterMs: proxyPauseMs, reason };
  if (isAlreadyDone(attempt.content, code)) return sent();
  return failed(failureKind(code, attempt), reason);
}

/** Says whether Discord refused a change because it is already in effect; such a change has succeeded. */
function isAlreadyDone({ kind }: OutboundContent, code: number): boolean {
  if (kind === 'action') return code === RESTJSONErrorCodes.ThreadAlreadyCreatedForMessage;
  return kind === 'delete' && code === RESTJSONErrorCodes.UnknownMessage;
}

type FailureKind = Exclude<SendFailure['kind'], 'migrated'>;

function failureKind(code: number, { content, isThread }: Attempt): FailureKind {
  // The bot may still be allowed to write where it may not pin, ask or open threads.
  if (content.kind === 'action' && code !== RESTJSONErrorCodes.UnknownChannel) return 'rejected';
  switch (code) {
    case RESTJSONErrorCodes.UnknownChannel:
    case RESTJSONErrorCodes.InvalidActionOnArchivedThread:
    case RESTJSONErrorCodes.ThreadLocked:
      if (!isThread) return 'unreachable';
      // A rejected change is sent as a message instead, which reopens an archived thread.
      return isRepeatable(content) ? 'rejected' : 'thread-gone';
    case RESTJSONErrorCodes.MissingAccess:
    case RESTJSONErrorCodes.CannotSendMessagesToThisUser:
    case RESTJSONErrorCodes.CannotSendMessagesToThisUserDueToHavingNoMutualGuilds:
    case RESTJSONErrorCodes.CannotSendMessagesInNonTextChannel:
      // The conversation is the parent channel, which is still reachable.
      return isThread ? 'rejected' : 'unreachable';
    case RESTJSONErrorCodes.MissingPermissions:
      // The bot may still be allowed to write where it may not react or edit.
      return content.kind === 'text' && !isThread ? 'unreachable' : 'rejected';
    case RESTJSONErrorCodes.InvalidFormBodyOrContentType:
      return hasSpans(content) ? 'markup' : 'rejected';
    default:
      return 'rejected';
  }
}

/** Says whether the quoted message caused the refusal: a system message, or a history that the bot may not read. */
export function isQuoteRefused(error: unknown): boolean {
  const code = readRefusal(error)?.code;
  if (code === RESTJSONErrorCodes.CannotReplyWithoutPermissionToReadMessageHistory) return true;
  return (
    code === RESTJSONErrorCodes.InvalidFormBodyOrContentType &&
    error instanceof Error &&
    /message_reference|REPLIES_/.test(error.message)
  );
}

/** Says whether the same file may still be sent as a file: voice messages are forbidden there, or this one isn't one. */
export function isVoiceRefused(error: unknown): boolean {
  const refusal = readRefusal(error);
  if (refusal?.code === undefined || refusal.status < 400 || refusal.status >= 500) return false;
  return voiceRefusals.has(refusal.code);
}

const voiceRefusals: ReadonlySet<number> = new Set([
  RESTJSONErrorCodes.VoiceMessagesDoNotSupportAdditionalContent,
  RESTJSONErrorCodes.VoiceMessagesMustHaveASingleAudioAttachment,
  RESTJSONErrorCodes.VoiceMessagesMustHaveSupportingMetadata,
  RESTJSONErrorCodes.YouCannotSendVoiceMessagesInThisChannel,
  RESTJSONErrorCodes.InvalidFormBodyOrContentType,
  RESTJSONErrorCodes.MissingPermissions,
]);

/** Says whether the interaction's token has expired or isn't known. */
export function isInteractionGone(error: unknown): boolean {
  const refusal = readRefusal(error);
  return refusal?.code !== undefined && (refusal.status === 404 || refusal.status === 401);
}

function hasSpans(content: OutboundContent): boolean {
  return (content.kind === 'text' || content.kind === 'edit') && content.text.spans.length > 0;
}

/** Returns why a call failed, as Discord or the network put it; for logs and faults. */
export function reasonOf(error: unknown): string {
  return readRefusal(error)?.reason ?? networkReason(error);
}

/** For logs and results; see `noAnswerFrom`. */
export function networkReason(error: unknown): string {
  return noAnswerFrom('Discord', error);
}
