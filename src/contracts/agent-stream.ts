/**
 * One event of a session, for programs that follow an agent. Any of them may be lost; the store shows the same. A run
 * has one `end` or `error`, whichever process ends it; a caller who needs it waits for the run.
 */
export type AgentStreamEvent =
  | { readonly stream: 'lifecycle'; readonly runId: string; readonly phase: 'start' | 'end' }
  /** `reason`: why the run didn't end naturally (`EndReason`). */
  | { readonly stream: 'lifecycle'; readonly runId: string; readonly phase: 'error'; readonly reason: string }
  | StreamedText<'assistant'>
  | StreamedText<'reasoning'>
  | {
      readonly stream: 'tool';
      readonly runId: string;
      readonly callId: string;
      readonly name: string;
      readonly phase: 'start' | 'end' | 'parked';
      readonly isError: boolean;
    }
  /** Sizes in tokens. A summary that somebody asked for is made regardless of the threshold. */
  | {
      readonly stream: 'compaction';
      readonly runId: string;
      readonly phase: 'start';
      readonly oldTokens: number;
      readonly threshold: number;
    }
  | { readonly stream: 'compaction'; readonly runId: string; readonly phase: 'done' | 'failed' }
  /** As `assistant`, without text that is never sent: silent tokens and the model's scaffolding. */
  | {
      readonly stream: 'chat';
      readonly runId: string;
      readonly phase: 'delta';
      readonly text: string;
      /** The answer starts over: the text shown so far is void. */
      readonly isAnew?: true;
    }
  /** The complete answer, including the end of its deltas; empty when the agent chose silence. */
  | { readonly stream: 'chat'; readonly runId: string; readonly phase: 'final'; readonly text: string }
  /** `progress`: share of the history the model has read, 0 to 1. `done`: the summary has ended, in whatever way. */
  | {
      readonly stream: 'summarize';
      readonly runId: string;
      readonly sessionId: string;
      readonly progress: number;
      readonly done: boolean;
    }
  | SessionChange
  | { readonly stream: 'queue'; readonly change: 'changed' | 'overflowed' }
  | { readonly stream: 'delivery'; readonly part: string; readonly result: string };

type SessionChange = { readonly stream: 'session'; readonly sessionId: string } & (
  | { readonly change: 'created' }
  | { readonly change: 'title'; readonly title: string }
  /** Cost of one model call, micro-dollars. */
  | { readonly change: 'cost'; readonly cost: number }
);

type StreamedText<Stream> = {
  readonly stream: Stream;
  readonly runId: string;
  readonly delta: string;
  /** The answer starts over: the text so far is void. */
  readonly isAnew?: true;
};
