import { FaultQueue } from '../shared/fault-queue.ts';
import type { Call } from './types.ts';

/** How one call of the REST API goes wrong. */
export type Fault =
  /** The platform's own refusal, as JSON. */
  | { readonly kind: 'refuse'; readonly status: number; readonly code: number; readonly message: string }
  /** 429 of the bucket, or of the whole application when `isGlobal`. */
  | { readonly kind: 'rate-limit'; readonly retryAfterMs: number; readonly isGlobal?: boolean }
  /** A page from the proxy in front: not JSON, nothing applied. */
  | { readonly kind: 'page'; readonly status: number }
  /** An answer that Discord would never give, with these headers and this body. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body: unknown;
    }
  /** The connection is cut and nothing was applied. */
  | { readonly kind: 'cut' }
  /** Applied, then the connection is cut before the answer. */
  | { readonly kind: 'drop-answer' }
  /** Applied, then 502: the answer was lost inside the platform. */
  | { readonly kind: 'lose-answer' }
  /** Applied and answered, except for the end of the answer's body, which never comes. */
  | { readonly kind: 'stall' }
  /** Applied immediately, answered after `ms`. */
  | { readonly kind: 'slow'; readonly ms: number }
  /** Never answered; applied or not. */
  | { readonly kind: 'hang'; readonly isApplied: boolean };

/**
 * `route` is as in the journal: `POST /channels/:channel/messages`; if omitted, any call matches. `id` is one in its
 * path.
 */
export type FaultMatch = { readonly route?: string; readonly id?: string; readonly times?: number };

/** Pending faults; each is used up by the calls it matches. */
export class Faults extends FaultQueue<Fault, FaultMatch> {
  take({ route, path }: Pick<Call, 'route' | 'path'>): Fault | undefined {
    return this.next(
      (match) =>
        (match.route ?? route) === route && (match.id === undefined || path.split('/').includes(match.id)),
    );
  }
}
