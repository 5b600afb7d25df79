import { FaultQueue } from '../shared/fault-queue.ts';

/** How one call goes wrong. */
export type Fault =
  /** The platform's own refusal, as JSON. A 429 has `parameters.retry_after` in seconds. */
  | {
      readonly kind: 'refuse';
      readonly code: number;
      readonly description: string;
      readonly parameters?: Readonly<Record<string, unknown>>;
    }
  /** A page from a proxy in between: not JSON, nothing applied. */
  | { readonly kind: 'page'; readonly code: number }
  /** Answered with this result, whatever was requested; nothing applied. */
  | { readonly kind: 'answer'; readonly result: unknown }
  /** Never answered; nothing applied. */
  | { readonly kind: 'silence' }
  /** The connection is cut and nothing was applied. */
  | { readonly kind: 'cut' }
  /** Applied, then the connection is cut before the answer. */
  | { readonly kind: 'drop-answer' }
  /** Applied immediately, answered after `ms`. */
  | { readonly kind: 'slow'; readonly ms: number };

export type FaultMatch = { readonly method?: string; readonly times?: number };

/** Pending faults; each is used up by the calls it matches. */
export class Faults extends FaultQueue<Fault, FaultMatch> {
  take(method: string): Fault | undefined {
    return this.next((match) => match.method === undefined || match.method === method);
  }
}
