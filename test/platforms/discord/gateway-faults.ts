/** How events go wrong on their way to the client. */
export type EventFault =
  /** The event never reaches any session. */
  | { readonly kind: 'drop'; readonly event?: string; readonly times?: number }
  /** The event comes twice, with two numbers. */
  | { readonly kind: 'duplicate'; readonly event?: string; readonly times?: number }
  /** The next `count` events are held and then come in the opposite order. */
  | { readonly kind: 'reverse'; readonly event?: string; readonly count: number };

/**
 * What the gateway withholds on connections that stay open and are otherwise served. With OPEN withheld they never open
 * at all, as behind a network that is down.
 */
export type Withheld = 'OPEN' | 'HELLO' | 'READY' | 'RESUMED' | 'GUILD_CREATE';

type Waiting = { readonly fault: EventFault; left: number; readonly held: (() => void)[] };

/** Decides for each event whether and when it is sent. */
export class EventFaults {
  #waiting: Waiting[] = [];

  add(fault: EventFault): void {
    const left = fault.kind === 'reverse' ? fault.count : (fault.times ?? 1);
    this.#waiting.push({ fault, left, held: [] });
  }

  /** Sends the events that were held back. */
  clear(): void {
    for (const { held } of this.#waiting) for (const send of held) send();
    this.#waiting = [];
  }

  pass(event: string, send: () => void): void {
    const next = this.#waiting.find(({ fault }) => fault.event === undefined || fault.event === event);
    if (next === undefined) {
      send();
      return;
    }
    next.left -= 1;
    if (next.left <= 0) this.#waiting = this.#waiting.filter((one) => one !== next);
    if (next.fault.kind === 'drop') return;
    if (next.fault.kind === 'duplicate') {
      send();
      send();
      return;
    }
    next.held.unshift(send);
    if (next.left <= 0) for (const one of next.held) one();
  }
}
