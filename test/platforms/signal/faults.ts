import { FaultQueue } from '../shared/fault-queue.ts';

/** How one call goes wrong. */
export type Fault =
  /** Answered with a status and a body, nothing applied. */
  | { readonly kind: 'refuse'; readonly status: number; readonly error: string }
  /**
   * 429 as the server words it. Tokens: a challenge to be solved; `['']`: a plain limit. `isDelivered`:
   * the message goes out all the same.
   */
  | { readonly kind: 'rate-limit'; readonly tokens: readonly string[]; readonly isDelivered?: boolean }
  /** A page of a proxy in between: not JSON, nothing applied. */
  | { readonly kind: 'page'; readonly status: number }
  /** The connection is cut and nothing was applied. */
  | { readonly kind: 'cut' }
  /** Applied, then the connection is cut before the answer. */
  | { readonly kind: 'drop-answer' }
  /** Never answered, the connection stays open. Applied or not. */
  | { readonly kind: 'hang'; readonly isApplied?: boolean }
  /** Applied at once, answered after `ms`. */
  | { readonly kind: 'slow'; readonly ms: number }
  /** Some recipients of a send get nothing: `reason` for each of these uuids or numbers; the call is 201. */
  | {
      readonly kind: 'partial';
      readonly failed: Readonly<Record<string, string>>;
    };

/**
 * Which calls a fault meets: by method and by the beginning of the path. Handshakes of sockets are met
 * only where the path is given; `cut`, `page`, `refuse` and
 * `hang` work on them.
 */
export type FaultMatch = { readonly method?: string; readonly path?: string; readonly times?: number };

/** Faults in waiting; each is used up by the calls it matches. */
export class Faults extends FaultQueue<Fault, FaultMatch> {
  take(method: string, path: string, isHandshake = false): Fault | undefined {
    return this.next(
      (match) =>
        (match.method === undefined || match.method === method) &&
        path.startsWith(match.path ?? '') &&
        !(isHandshake && match.path === undefined),
    );
  }
}
