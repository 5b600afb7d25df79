/**
 * Decides the outcome of a failed call. Telegram has no idempotency key, so the question is always whether the call may
 * have been applied. Refusals (4xx) and requests that never left weren't. Otherwise the outcome of a send is unknown;
 * edits, deletes and reactions are safe to repeat.
 */
import { noAnswerFrom } from '#channel-kit/network-fault.ts';
import { askedWaitMs } from '#channel-kit/remote-number.ts';
import { ambiguous, sent, unanswered } from '#channel-kit/send-result.ts';
import { conversationId } from '#contracts/ids.ts';
import type { OutboundContent, SendFailure, SendResult } from '#contracts/outbound.ts';

export type ApiRefusal = {
  readonly code: number;
  readonly description: string;
  /** The wait that Telegram asks for, as read by the function of this name. */
  readonly askedWaitMs: number | undefined;
  readonly migratedTo: string | undefined;
};

/** Reads the platform's refusal from an error that grammY threw; undefined for anything else. */
export function readRefusal(error: unknown): ApiRefusal | undefined {
  if (!(error instanceof Error) || !('error_code' in error) || typeof error.error_code !== 'number')
    return undefined;
  const parameters = 'parameters' in error && typeof error.parameters === 'object' ? error.parameters : null;
  const { retry_after: seconds, migrate_to_chat_id: chat } = (parameters ?? {}) as Record<string, unknown>;
  return {
    code: error.error_code,
    description: 'description' in error ? String(error.description) : '',
    askedWaitMs: askedWaitMs(seconds, 1000),
    migratedTo: Number.isSafeInteger(chat) ? String(chat) : undefined,
  };
}

/** Returns the result of a send that threw. `isAborted`: the caller stopped waiting. */
export function failureOf(error: unknown, content: OutboundContent, isAborted: boolean): SendResult {
  const refusal = readRefusal(error);
  if (refusal !== undefined) return refused(refusal, content);
  return unanswered(error, 'Telegram', { content, isAborted });
}

function refused(refusal: ApiRefusal, content: OutboundContent): SendResult {
  const { code, description: reason, migratedTo } = refusal;
  if (code === 429) return { kind: 'retry', afterMs: refusal.askedWaitMs ?? 5000, reason };
  // A 500 with a JSON body is the Bot API's own "not now". A proxy's answer (502, 503, 504) or that of a restarting
  // server says nothing about the send itself.
  if (code === 500 && !/restart|abort/i.test(reason)) return { kind: 'retry', afterMs: 0, reason };
  if (code >= 500) return ambiguous(content, reason);
  if (isAlreadyDone(content, reason)) return content.kind === 'edit' ? sent(content.messageId) : sent();
  return { kind: 'failed', failure: failureKind(code, reason, migratedTo), reason };
}

/** Says whether Telegram refused a change because it is already in effect; such a change has succeeded. */
function isAlreadyDone(content: OutboundContent, reason: string): boolean {
  if (content.kind === 'edit') return /message is not modified/i.test(reason);
  if (content.kind === 'action') return /CHAT_NOT_MODIFIED/.test(reason);
  return content.kind === 'delete' && /message to delete not found/i.test(reason);
}

/** A 400 says more only in its description; the wording matched here is the Bot API server's and TDLib's. */
const badRequests: readonly (readonly [RegExp, SendFailure['kind']])[] = [
  [
    /can't parse (entit|message ?entity|caption)|entity (begins|beginning|url)|ENTIT(Y|IES)_|incorrect (offset|length)/i,
    'markup',
  ],
  [/message thread not found|TOPIC_DELETED|TOPIC_ID_INVALID/i, 'thread-gone'],
  [
    /chat not found|PEER_ID_INVALID|chat was (deactivated|deleted)|user is deactivated|INPUT_USER_DEACTIVATED/i,
    'unreachable',
  ],
];

function failureKind(code: number, reason: string, migratedTo: string | undefined): SendFailure {
  if (migratedTo !== undefined) return { kind: 'migrated', to: conversationId(migratedTo) };
  if (code === 403) return { kind: 'unreachable' };
  // A malformed token answers 404; the methods themselves are known to exist.
  if (code === 401 || code === 404) return { kind: 'unauthorised' };
  const kind = badRequests.find(([wording]) => wording.test(reason))?.[1];
  return kind === 'markup' || kind === 'thread-gone' || kind === 'unreachable'
    ? { kind }
    : { kind: 'rejected' };
}

/**
 * Returns true if Telegram doesn't take the file as what it was sent as: a photo that is too long and narrow, a video it
 * can't read, or a voice message to somebody who accepts none. A group that forbids a kind of file (`CHAT_SEND_…`) isn't
 * sent it as another.
 */
export function isUnfit(error: unknown): boolean {
  const refusal = readRefusal(error);
  return refusal?.code === 400 && unfit.test(refusal.description);
}

const unfit =
  /\b(?:photo|image|video|animation|gif|audio|voice|media|document|file)_[a-z_]+|wrong (?:type of )?file|type of file mismatch|can't use file of type/i;

/** Returns why a call failed, as Telegram or the network put it; for logs and faults. */
export function reasonOf(error: unknown): string {
  return readRefusal(error)?.description ?? networkReason(error);
}

/** For logs and results; see `noAnswerFrom`. */
export function networkReason(error: unknown): string {
  return noAnswerFrom('Telegram', error);
}
