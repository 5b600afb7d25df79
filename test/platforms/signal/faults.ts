import { FaultQueue } from '../shared/fault-queue.ts';

/** How one call goes wrong. */
export type Fault =
  /** Answered with a status and a body; nothing applied. */
  | { readonly kind: 'refuse'; readonly status: number; readonly error: string }
  /**
   * A 429 in the server's words. Tokens: a challenge to solve; `['']`: a plain limit. `isDelivered`: the message is
   * sent all the same.
   */
  | { readonly kind: 'rate-limit'; readonly tokens: readonly string[]; readonly isDelivered?: boolean }
  /** A page from a proxy in between: not JSON, nothing applied. */
  | { readonly kind: 'page'; readonly status: number }
  /** The connection is cut and nothing was applied. */
  | { readonly kind: 'cut' }
  /** Applied, then the connection is cut before the answer. */
  | { readonly kind: 'drop-answer' }
  /** Never answered, with the connection left open. Applied or not. */
  | { readonly kind: 'hang'; readonly isApplied?: boolean }
  /**
   * signal-cli writes these lines after what it fetched, and the server passes all of it on: as one list, or as its error
   * if signal-cli `failed`.
   */
  | { readonly kind: 'mixed-output'; readonly lines: readonly string[]; readonly failed?: boolean }
  /** Applied immediately, answered after `ms`. */
  | { readonly kind: 'slow'; readonly ms: number }
  /** Some recipients of a send get nothing: `reason` for each of these uuids or numbers; the call gets a 201. */
  | {
      readonly kind: 'partial';
      readonly failed: Readonly<Record<string, string>>;
    };

/**
 * Which calls a fault affects: by method and by the start of the path. Socket handshakes are only affected if the path
 * is given; `cut`, `page`, `refuse` and `hang` work on them.
 */
export type FaultMatch = { readonly method?: string; readonly path?: string; readonly times?: number };

/** Pending faults; each is used up by the calls it matches. */
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
