import type { Counts } from './histogram.ts';
import type { Load, LoadResult } from './load.ts';
import type { Marked } from './message.ts';

/** Arguments of a process. */
export type ProcessSettings = {
  /** Its configuration file. */
  readonly config: string;
  readonly logFile: string;
};

/** Requests of the measurement to a process … */
export type Order =
  | { readonly kind: 'load'; readonly load: Load }
  | { readonly kind: 'figures'; readonly collectsGarbage: boolean }
  /** Answers that another process has sent. */
  | { readonly kind: 'sent'; readonly sent: readonly Sent[] }
  | { readonly kind: 'stop' };

export type Sent = { readonly marked: Marked; readonly at: number };

/** … and its reports. Times are ms since the epoch. */
export type Report =
  | { readonly kind: 'begun'; readonly at: number }
  | { readonly kind: 'ready'; readonly at: number }
  /** This process receives for the account. */
  | { readonly kind: 'receiving' }
  | { readonly kind: 'first-model-call'; readonly at: number }
  | { readonly kind: 'sent'; readonly sent: readonly Sent[] }
  | { readonly kind: 'loaded'; readonly result: LoadResult }
  | { readonly kind: 'figures'; readonly figures: ProcessFigures }
  | { readonly kind: 'failed'; readonly problem: string };

/** The counts since they were last requested. */
export type ProcessFigures = {
  readonly accepted: Counts;
  readonly sent: Counts;
  readonly residentMb: number;
  readonly heapMb: number;
  /** Longest time that the event loop was held up, ms. */
  readonly longestPauseMs: number;
};
