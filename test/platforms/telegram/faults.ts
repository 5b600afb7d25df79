/** How one call goes wrong. */
export type Fault =
  /** The platform's own refusal, as JSON. 429 takes `parameters.retry_after` in seconds. */
  | {
      readonly kind: 'refuse';
      readonly code: number;
      readonly description: string;
      readonly parameters?: Readonly<Record<string, unknown>>;
    }
  /** A page of a proxy in between: not JSON, nothing applied. */
  | { readonly kind: 'page'; readonly code: number }
  /** Answered with this as the result, whatever was asked, and nothing applied. */
  | { readonly kind: 'answer'; readonly result: unknown }
  /** Never answered, and nothing applied. */
  | { readonly kind: 'silence' }
  /** The connection is cut and nothing was applied. */
  | { readonly kind: 'cut' }
  /** Applied, then the connection is cut before the answer. */
  | { readonly kind: 'drop-answer' }
  /** Applied at once, answered after `ms`. */
  | { readonly kind: 'slow'; readonly ms: number };

export type FaultMatch = { readonly method?: string; readonly times?: number };

/** Faults in waiting; each is used up by the calls it matches. */
export class Faults {
  #waiting: { readonly fault: Fault; readonly method: string | undefined; left: number }[] = [];

  add(fault: Fault, { method, times = 1 }: FaultMatch): void {
    this.#waiting.push({ fault, method, left: times });
  }

  clear(): void {
    this.#waiting = [];
  }

  take(method: string): Fault | undefined {
    if (this.#waiting.length === 0) return undefined;
    const next = this.#waiting.find((one) => one.method === undefined || one.method === method);
    if (next === undefined) return undefined;
    next.left -= 1;
    if (next.left <= 0) this.#waiting = this.#waiting.filter((one) => one !== next);
    return next.fault;
  }
}
