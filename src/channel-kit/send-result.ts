import { access, constants, stat } from 'node:fs/promises';
import { messageId } from '#contracts/ids.ts';
import { filesOf, type OutboundContent, type SendFailure, type SendResult } from '#contracts/outbound.ts';
import { neverLeft, noAnswerFrom } from './network-fault.ts';

/** Returns the result of a call that the network confirmed; `ids`: of the messages that it created or changed. */
export function sent(...ids: readonly string[]): SendResult {
  return { kind: 'sent', receipts: ids.map(messageId) };
}

/** Returns the result of a part that the network refused permanently. */
export function failed(kind: Exclude<SendFailure['kind'], 'migrated'>, reason: string): SendResult {
  return { kind: 'failed', failure: { kind }, reason };
}

/** True for changes of existing messages, which have the same effect when repeated. */
export function isRepeatable(content: OutboundContent): boolean {
  return content.kind !== 'text' && content.kind !== 'media' && content.messageId !== undefined;
}

/** Returns the result of a call that may have reached the network. */
export function ambiguous(content: OutboundContent, reason: string): SendResult {
  return isRepeatable(content) ? { kind: 'retry', afterMs: 0, reason } : { kind: 'unknown', reason };
}

export type UnansweredCall = {
  readonly content: OutboundContent;
  /** The caller stopped waiting. */
  readonly isAborted: boolean;
};

/** Returns the result of a call that threw before `server` answered. */
export function unanswered(
  error: unknown,
  server: string,
  { content, isAborted }: UnansweredCall,
): SendResult {
  const reason = noAnswerFrom(server, error);
  if (neverLeft(error)) return { kind: 'retry', afterMs: 0, reason, isOutage: true };
  return ambiguous(content, isAborted ? `the wait ended before ${server} answered` : reason);
}

/**
 * Returns the sizes of the files to send in bytes, none for other contents; undefined if one of them can't be read (why
 * doesn't concern the network).
 */
export async function sizesOf(content: OutboundContent): Promise<readonly number[] | undefined> {
  if (content.kind !== 'media') return [];
  const sizes = await Promise.all(filesOf(content).map(({ path }) => sizeOf(path)));
  return sizes.every((size) => size !== undefined) ? sizes : undefined;
}

/** Returns the size of a local file in bytes; undefined if it can't be read. */
export async function sizeOf(path: string): Promise<number | undefined> {
  try {
    await access(path, constants.R_OK);
    const entry = await stat(path);
    return entry.isFile() ? entry.size : undefined;
  } catch {
    return undefined; // The caller reports it to the core.
  }
}

/** Returns a name for an upload, at most 120 characters; `reserved` matches characters that would end it too early. */
export function uploadName(name: string, reserved: RegExp): string {
  const bare = name
    .toWellFormed()
    .replace(/\p{Cc}/gu, '_')
    .replace(reserved, '_')
    .trim();
  return bare.slice(-120) || 'file';
}
