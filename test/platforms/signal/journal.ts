import { Probes } from '../shared/probes.ts';
import type { Call, Refusal } from './types.ts';

/** The requests to the server, and what was wrong with them. */
export class Journal {
  readonly calls: Call[] = [];
  readonly refusals: Refusal[] = [];
  /** The call whose handler is running. */
  current: Call | undefined;
  readonly #now: () => number;
  readonly #probes = new Probes(() => {
    const last = this.calls.slice(-8).map(({ method, path, status }) => `${method} ${path} ${status}`);
    return `last calls: ${last.join('; ')}`;
  });

  constructor(now: () => number) {
    this.#now = now;
  }

  begin(asked: Pick<Call, 'method' | 'path' | 'query' | 'body'>): Call {
    const call: Call = { ...asked, at: this.#now(), status: 0, answer: '', answered: false };
    this.calls.push(call);
    return call;
  }

  refuse(call: Call | undefined, why: string): void {
    this.refusals.push({
      call,
      why,
      get status() {
        return call?.status ?? 0;
      },
    });
  }

  changed(): void {
    this.#probes.changed();
  }

  /** Like `Probes.waitFor`, but also checks every 10 ms: clients receive messages without this server noticing. */
  async waitFor<T>(probe: () => T | undefined | false, deadlineMs: number): Promise<T> {
    const glances = setInterval(() => this.#probes.changed(), 10);
    try {
      return await this.#probes.waitFor(probe, deadlineMs);
    } finally {
      clearInterval(glances);
    }
  }
}
