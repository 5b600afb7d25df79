/**
 * Turns the error of a model call into a failure for the loop and a judgement about the key. One for both APIs: what a
 * refusal means is decided by `refusals.ts`.
 */

import { isRedirect, RedirectRefused } from '#channel-kit/redirects.ts';
import type { ModelFailure, ModelRequest, RefusalClass } from '#contracts/model.ts';
import { type ApiFault, lostConnection, wordsOf } from './api-fault.ts';
import { type Refusal, readRefusal } from './read-refusal.ts';
import { type RefusedSizes, sizesIn, waitIn } from './refusal-numbers.ts';
import { classOf } from './refusals.ts';
import { refusalBehind, ServerRefusal } from './server-refusal.ts';

/** A refusal, read and judged. */
export type JudgedRefusal = {
  readonly refusal: Refusal;
  readonly is: RefusalClass;
  readonly sizes: RefusedSizes;
  /** The address that was asked. */
  readonly url?: string;
};

/** The request, as far as its refusal is judged by it. */
export type RefusedCall = {
  readonly request: ModelRequest;
  /** Index of the request's message for each message on the wire; absent: they are the same. */
  readonly sources?: readonly number[];
  readonly secrets: readonly string[];
  /** Ms since the epoch. */
  readonly now: number;
};

/** Reads the refusal in an error of an SDK; undefined if the server didn't refuse. */
export function judgeError(error: unknown, call: Pick<RefusedCall, 'request'>): JudgedRefusal | undefined {
  const found = refusalBehind(error);
  if (found instanceof RedirectRefused) return undefined;
  if (found instanceof ServerRefusal) {
    const { status, headers, url } = found;
    const body = isRedirect(status) ? redirectText(found) : found.body;
    return { ...judge(readRefusal({ status, headers, body, isAnswer: true }), call), url };
  }
  // Both SDKs throw an error inside a stream as one without a status.
  const { error: body, status, headers } = error as { error?: unknown; status?: unknown; headers?: unknown };
  if (!(error instanceof Error) || body === undefined || body === null || status !== undefined)
    return undefined;
  const known = headers instanceof Headers ? headers : undefined;
  return judge(readRefusal({ body, headers: known, isAnswer: false }), call);
}

function redirectText({ url, headers }: ServerRefusal): string {
  return new RedirectRefused(new URL(url), headers?.get('location') ?? '').message;
}

function judge(refusal: Refusal, { request }: Pick<RefusedCall, 'request'>): JudgedRefusal {
  let said: string | undefined;
  const requestText = () => {
    said ??= textOf(request);
    return said;
  };
  return { refusal, is: refine(classOf(refusal, requestText), refusal), sizes: sizesIn(refusal) };
}

/** Names what is about a message by the field that the server names. */
function refine(is: RefusalClass, { status, param, words }: Refusal): RefusalClass {
  if ((is !== 'unknown' && is !== 'no-model') || (status !== 400 && status !== 422)) return is;
  return param?.startsWith('messages') || /^messages\b|\bsupports? images?\b|image inputs?\b/.test(words)
    ? 'content'
    : is;
}

/** Everything in the conversation that a server could repeat, in lower case. */
function textOf({ messages }: ModelRequest): string {
  const texts: string[] = [];
  for (const { content } of messages)
    for (const block of content) {
      if (block.type === 'text') texts.push(block.text);
      if (block.type === 'tool_result') texts.push(block.content);
      if (block.type === 'tool_use') texts.push(JSON.stringify(block.input ?? null));
    }
  return texts.join('\n').toLowerCase().replaceAll('’', "'");
}

/** Returns the fault that the platform or the connection reported. `isConnection`: the SDK lost its connection. */
export function faultIn(error: unknown, isConnection: boolean, call: RefusedCall): ApiFault | undefined {
  const judged = judgeError(error, call);
  if (judged) return faultOf(judged, call);
  const redirected = refusalBehind(error);
  if (redirected instanceof RedirectRefused) return redirectFault(redirected);
  return isConnection ? lostConnection(error) : undefined;
}

function redirectFault({ message }: RedirectRefused): ApiFault {
  return {
    failure: { kind: 'failed', detail: message, refusal: 'address', isFree: true },
    isAboutKey: false,
  };
}

function faultOf(judged: JudgedRefusal, call: RefusedCall): ApiFault {
  const { refusal, is } = judged;
  const failure: ModelFailure = {
    ...failureOf(judged, call),
    detail: detailOf(judged, call.secrets),
    refusal: is,
    ...(refusal.isAnswer && { isFree: true }),
  };
  return { failure, isAboutKey: is === 'key' || is === 'credit' || is === 'allowance' };
}

function failureOf(
  { refusal, is, sizes }: JudgedRefusal,
  { sources, now }: RefusedCall,
): Omit<ModelFailure, 'detail'> {
  switch (is) {
    case 'overflow':
      return { kind: 'overflow', ...(sizes.window !== undefined && { window: sizes.window }) };
    case 'content':
      return { kind: 'unsendable', ...indexIn(refusal, sources) };
    case 'policy':
      return { kind: 'refused' };
    case 'key':
    case 'credit':
      return { kind: 'unauthorised' };
    case 'forbidden':
      return { kind: 'unauthorised', isAboutModel: true };
    case 'allowance':
    case 'rate':
    case 'passing':
      return waiting(refusal, is, now);
    case 'slip':
      return { kind: 'failed', retry: { kind: 'later', afterMs: 0 } };
    case 'answer-limit':
    case 'no-model':
    case 'address':
    case 'unknown':
      return { kind: 'failed' };
    default:
      return is satisfies never;
  }
}

/** Longer waits aren't worth a call's time, ms. */
const longWaitMs = 600_000;

function waiting(refusal: Refusal, is: RefusalClass, now: number): Omit<ModelFailure, 'detail'> {
  const afterMs = waitIn(refusal, now);
  const isOwnLimit = is === 'allowance' || (afterMs !== undefined && is === 'rate');
  const isLongWait = is === 'allowance' && (afterMs === undefined || afterMs > longWaitMs);
  return {
    kind: 'overloaded',
    retry: { kind: 'later', ...(afterMs !== undefined && { afterMs }) },
    ...(isOwnLimit && { isOwnLimit }),
    ...(isLongWait && { isLongWait }),
  };
}

/** Finds the message at fault by its position on the wire. */
function indexIn({ param, words }: Refusal, sources: readonly number[] | undefined) {
  const index = /^messages[.[](\d{1,6})/.exec(param ?? words)?.[1];
  if (index === undefined) return {};
  const source = sources ? sources[Number(index)] : Number(index);
  return source === undefined || source < 0 ? {} : { messageIndex: source };
}

/** Returns status, code and the server's own words, shortened and without secrets. */
function detailOf({ refusal, is, url }: JudgedRefusal, secrets: readonly string[]): string {
  const { status, codes, said, isPage } = refusal;
  const code = codes.find((each) => !/^\d+$/.test(each) && each !== 'error');
  const page = isPage ? 'a page instead of an answer:' : undefined;
  const words = wordsOf(said || 'no message', secrets);
  const asked = is === 'address' && url !== undefined ? `(asked ${wordsOf(url, secrets)})` : undefined;
  return [status, code, page, words, asked].filter(Boolean).join(' ');
}
