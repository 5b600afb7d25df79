/** Reply part → platform call, and the platform's answer → result. Pure. */

import { messageId } from '#contracts/ids.ts';
import { filesOf, type Outbound, type SendResult } from '#contracts/outbound.ts';
import { exampleCapabilities } from './capabilities.ts';

export type Call =
  | {
      readonly kind: 'call';
      readonly method: string;
      readonly path: string;
      readonly body?: object;
      /** The file whose bytes are sent along. */
      readonly file?: string;
    }
  | { readonly kind: 'rejected'; readonly reason: string };

/** `sizeBytes` is that of the file to send; undefined if it can't be read. */
export function callOf({ route, content }: Outbound, sizeBytes: number | undefined): Call {
  const path = `/rooms/${encodeURIComponent(route.conversation)}/messages`;
  switch (content.kind) {
    case 'text':
      if (content.text.text.length > exampleCapabilities.text.maxLength)
        return { kind: 'rejected', reason: 'the text is longer than the network takes' };
      return {
        kind: 'call',
        method: 'POST',
        path,
        body: { ...content.text, thread: route.thread, quotes: route.replyTo },
      };
    case 'edit':
      return { kind: 'call', method: 'PUT', path: `${path}/${content.messageId}`, body: content.text };
    case 'action':
      return { kind: 'rejected', reason: 'the network has no such action' };
    case 'delete':
      return { kind: 'call', method: 'DELETE', path: `${path}/${content.messageId}` };
    case 'reaction': {
      const body = { emoji: content.emoji };
      return { kind: 'call', method: 'PUT', path: `${path}/${content.messageId}/reactions`, body };
    }
    case 'media': {
      if (sizeBytes === undefined || sizeBytes > (exampleCapabilities.media?.maxBytes ?? 0))
        return { kind: 'rejected', reason: 'the file is gone, or larger than the network takes' };
      // The network has no albums.
      const [{ name, path: file } = { name: '', path: '' }] = filesOf(content);
      const { caption = { text: '', spans: [] } } = content;
      const body = { ...caption, thread: route.thread, quotes: route.replyTo, fileName: name };
      return { kind: 'call', method: 'POST', path, body, file };
    }
    default:
      return content satisfies never;
  }
}

/** The outcome of a call: an answer, no connection at all, or a connection that ended without an answer. */
export type CallEnd =
  | { readonly kind: 'answer'; readonly status: number; readonly body: Answer }
  | { readonly kind: 'not-connected'; readonly reason: string }
  | { readonly kind: 'no-answer'; readonly reason: string };

export type Answer = { readonly id?: number; readonly code?: string; readonly afterMs?: number };

export function resultOf(end: CallEnd, content: Outbound['content']): SendResult {
  if (end.kind === 'not-connected') return { kind: 'retry', afterMs: 0, reason: end.reason, isOutage: true };
  if (end.kind === 'no-answer') return { kind: 'unknown', reason: end.reason };
  const { status, body } = end;
  const reason = `status ${status}${body.code === undefined ? '' : `, ${body.code}`}`;
  if (status === 200) {
    const isText = content.kind === 'text' || content.kind === 'edit' || content.kind === 'media';
    return { kind: 'sent', receipts: isText ? [messageId(String(body.id))] : [] };
  }
  if (status === 429) return { kind: 'retry', afterMs: body.afterMs ?? 0, reason };
  if (status === 401) return { kind: 'failed', failure: { kind: 'unauthorised' }, reason };
  if (status === 404 && content.kind === 'delete') return { kind: 'sent', receipts: [] };
  if (body.code === 'blocked') return { kind: 'failed', failure: { kind: 'unreachable' }, reason };
  if (body.code === 'markup') return { kind: 'failed', failure: { kind: 'markup' }, reason };
  // The server may have accepted the message before it failed.
  if (status >= 500) return { kind: 'unknown', reason };
  return { kind: 'failed', failure: { kind: 'rejected' }, reason };
}
