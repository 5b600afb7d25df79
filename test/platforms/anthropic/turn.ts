import type { Gate } from './gate.ts';
import type { WireBody, WireUsage } from './wire.ts';

/** What the model answers. Without `text`, `chunks`, `thinking` and `toolCalls` the answer is empty. */
export type Turn = {
  readonly text?: string;
  /** The text in exactly these pieces; overrides `text`. */
  readonly chunks?: readonly string[];
  readonly thinking?: string;
  readonly toolCalls?: readonly ScriptedCall[];
  /** Default: `tool_use` with tool calls, otherwise `end_turn`. */
  readonly stopReason?: string;
  /** The delay before any part of the answer. */
  readonly delayMs?: number;
  /** The delay before every chunk. */
  readonly chunkDelayMs?: number;
  readonly usage?: Partial<WireUsage>;
  /** Why the prompt wasn't read from the cache; told only to a request that asks. `pending`: not known yet. */
  readonly cacheMiss?: string;
  /** Waits at a gate: before the answer, or after this many chunks of the stream. */
  readonly hold?: { readonly gate: Gate; readonly afterChunks?: number };
  /** After its last event, the stream stays open until this gate is opened. */
  readonly linger?: Gate;
};

export type ScriptedCall = {
  readonly id?: string;
  readonly name: string;
  readonly input?: unknown;
  /** The input as the model wrote it, for broken JSON; overrides `input`. */
  readonly inputJson?: string;
};

/** A fault. One that has chunks starts like the turn it extends. */
export type Fault =
  /** An error answer; `errorCode` is the platform's `details.error_code`. */
  | {
      readonly status: number;
      readonly retryAfter?: number | string;
      readonly message?: string;
      readonly errorType?: string;
      readonly errorCode?: string;
    }
  /** The connection is destroyed after this many chunks. */
  | (Turn & { readonly cutAfter: number })
  /** The stream ends cleanly after this many chunks, without `message_stop`. */
  | (Turn & { readonly endAfter: number })
  /** An `error` event in the stream, after this many chunks (default 0). */
  | (Turn & { readonly midStreamError: string; readonly afterChunks?: number })
  /** Status 200 and an event stream, but then this text instead of events. */
  | { readonly garbage: string }
  /** The request is read and never answered. */
  | { readonly hang: true }
  /** The connection is destroyed before any answer. */
  | { readonly disconnect: true }
  /** The stream stays open and silent forever after this many chunks. */
  | (Turn & { readonly silentAfter: number });

export type Reply = Turn | Fault;

/** One reply per accepted request, in order, or a function that answers by content. */
export type Script = readonly Reply[] | ((request: WireBody, count: number) => Reply | Promise<Reply>);
