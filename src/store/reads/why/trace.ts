import type { ApprovalFacts } from './read-approvals.ts';
import type { EventFacts, ItemFacts } from './read-items.ts';
import type { PartFacts } from './read-parts.ts';
import type { RunFacts } from './read-runs.ts';
import type { ChildFacts } from './read-tree.ts';

/**
 * A message's trace from the store: names, states, times and counts. Holds no message text except requested
 * excerpts.
 */
export type MessageTrace = {
  readonly asked: TraceSubject;
  /** Platform events about the messages, oldest first. */
  readonly events: readonly EventFacts[];
  /** The messages that entered a lane: what was asked for, and all that its runs took. In arrival order. */
  readonly items: readonly ItemFacts[];
  readonly runs: readonly RunFacts[];
  /** Sub-agents of the runs' trees, in the order of their spawns; their runs and items are among the others. */
  readonly children: readonly ChildFacts[];
  /** Answers, oldest first. */
  readonly parts: readonly PartFacts[];
  /** Questions that a person with the right to decides: what was asked for, and what a person's first message led to. */
  readonly approvals: readonly ApprovalFacts[];
};

/** Subject that `why` was asked about. */
export type TraceSubject =
  | { readonly kind: 'message'; readonly conversationKey: string; readonly messageId: string }
  | { readonly kind: 'event'; readonly account: string; readonly eventKey: string }
  | { readonly kind: 'call'; readonly messageId: string; readonly callId: string }
  | { readonly kind: 'item' | 'part' | 'run' | 'transcript' | 'child' | 'approval'; readonly id: string };

/** Something that an id may mean, named so that it can be asked for again. */
export type Candidate = {
  readonly name: string;
  readonly what: 'arrived' | 'sent' | 'spawned' | 'called' | 'asked';
  readonly at: number;
};

/** A candidate and what it stands for. */
export type NamedCandidate = { readonly asked: TraceSubject; readonly candidate: Candidate };
