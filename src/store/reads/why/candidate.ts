import type { TraceSubject } from './trace.ts';

/** Something that an id may mean, named so that it can be asked for again. */
export type Candidate = {
  readonly name: string;
  readonly what: 'arrived' | 'sent' | 'spawned' | 'called' | 'asked';
  readonly at: number;
};

/** A candidate and what it stands for. */
export type NamedCandidate = { readonly asked: TraceSubject; readonly candidate: Candidate };
