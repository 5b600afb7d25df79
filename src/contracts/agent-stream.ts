/**
 * One event of a session, for programs that follow an agent. Any may be lost: the store shows the same. A run has
 * one `end` or `error`, whichever process ends it; a caller who needs it waits for the run.
 */
export type AgentStreamEvent =
  | { readonly stream: 'lifecycle'; readonly runId: string; readonly phase: 'start' | 'end' }
  /** `reason`: why the run didn't end by itself (`EndReason`). */
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
  /** Sizes in tokens. A summary that somebody asked for is made whatever the threshold. */
  | {
      readonly stream: 'compaction';
      readonly runId: string;
      readonly phase: 'start';
      readonly oldTokens: number;
      readonly threshold: number;
    }
  | { readonly stream: 'compaction'; readonly runId: string; readonly phase: 'done' | 'failed' }
  /** As `assistant`, without what is never sent: words of silence, and what belongs to the model's machinery. */
  | {
      readonly stream: 'chat';
      readonly runId: string;
      readonly phase: 'delta';
      readonly text: string;
      /** Another answer begins: the text shown before was none. */
      readonly isAnew?: true;
    }
  /** The whole answer, the end of its deltas included; empty when the agent chose silence. */
  | { readonly stream: 'chat'; readonly runId: string; readonly phase: 'final'; readonly text: string }
  /** `progress`: share of the history that the model has read, 0 to 1. `done`: the summary is over, however it ended. */
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
  /** The answer so far counts for nothing: this begins it again. */
  readonly isAnew?: true;
};
