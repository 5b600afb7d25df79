import type { EventFacts, ItemFacts } from './read-items.ts';
import type { ApprovalFacts, CallApprovalFacts, PartFacts } from './read-parts.ts';
import type { ChildFacts, RunFacts, TaskFacts } from './read-runs.ts';

/**
 * A message's trace from the store: names, states, times and counts. Contains no message text except requested
 * excerpts.
 */
export type MessageTrace = {
  readonly asked: TraceSubject;
  /** Platform events about the messages, oldest first. */
  readonly events: readonly EventFacts[];
  /** Messages that entered a lane, in arrival order: the requested ones and all that their runs took. */
  readonly items: readonly ItemFacts[];
  readonly runs: readonly RunFacts[];
  /** Sub-agents of the runs' trees, in spawn order; their runs and items are listed among the others. */
  readonly children: readonly ChildFacts[];
  /** Tasks of those trees, in the order in which they began. */
  readonly tasks: readonly TaskFacts[];
  /** Answers, oldest first. */
  readonly parts: readonly PartFacts[];
  /** Questions for a person with the right to decide: the requested ones, and those caused by a stranger's message. */
  readonly approvals: readonly ApprovalFacts[];
  /** Questions about the runs' tool calls, oldest first. */
  readonly callApprovals: readonly CallApprovalFacts[];
};

/** The subject that `why` was asked about. */
export type TraceSubject =
  | { readonly kind: 'message'; readonly conversationKey: string; readonly messageId: string }
  | { readonly kind: 'event'; readonly account: string; readonly eventKey: string }
  | { readonly kind: 'call'; readonly messageId: string; readonly callId: string }
  | {
      readonly kind: 'item' | 'part' | 'run' | 'transcript' | 'child' | 'task' | 'approval';
      readonly id: string;
    };

/** A possible meaning of an id, with a name under which it can be requested again. */
export type Candidate = {
  readonly name: string;
  readonly what: 'arrived' | 'sent' | 'spawned' | 'delegated' | 'called' | 'asked';
  readonly at: number;
};

/** A candidate and the subject that it stands for. */
export type NamedCandidate = { readonly asked: TraceSubject; readonly candidate: Candidate };
