import { messageId } from '#contracts/ids.ts';
import type { OutboundContent, SendFailure, SendResult } from '#contracts/outbound.ts';
import { neverLeft, noAnswerFrom } from './network-fault.ts';

/** The network confirmed the call; `ids` are those of the messages that it made or changed. */
export function sent(...ids: readonly string[]): SendResult {
  return { kind: 'sent', receipts: ids.map(messageId) };
}

/** The network refused the part for good. */
export function failed(kind: Exclude<SendFailure['kind'], 'migrated'>, reason: string): SendResult {
  return { kind: 'failed', failure: { kind }, reason };
}

/** Edits, deletions and reactions: done twice, they leave what done once they leave. */
export function isRepeatable({ kind }: OutboundContent): boolean {
  return kind === 'edit' || kind === 'delete' || kind === 'reaction';
}

/** The result of a call that may have been heard. */
export function ambiguous(content: OutboundContent, reason: string): SendResult {
  return isRepeatable(content) ? { kind: 'retry', afterMs: 0, reason } : { kind: 'unknown', reason };
}

export type UnansweredCall = {
  readonly content: OutboundContent;
  /** The caller stopped waiting. */
  readonly isAborted: boolean;
};

/** The result of a call that threw before `server` answered. */
export function unanswered(
  error: unknown,
  server: string,
  { content, isAborted }: UnansweredCall,
): SendResult {
  const reason = noAnswerFrom(server, error);
  if (neverLeft(error)) return { kind: 'retry', afterMs: 0, reason, isOutage: true };
  return ambiguous(content, isAborted ? `the wait was ended before ${server} answered` : reason);
}
