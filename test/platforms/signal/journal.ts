import type { Call, Refusal } from './types.ts';

/** What was asked of the server, and what was wrong with it. */
export class Journal {
  readonly calls: Call[] = [];
  readonly refusals: Refusal[] = [];
  /** The call whose handler runs. */
  current: Call | undefined;
  readonly #now: () => number;
  readonly #waiters = new Set<() => void>();

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
    for (const check of [...this.#waiters]) check();
  }

  /** Resolves with the first value of `probe` that is not undefined or false. Rejects after `deadlineMs`. */
  waitFor<T>(probe: () => T | undefined | false, deadlineMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const check = () => {
        const value = probe();
        if (value === undefined || value === false) return;
        finish();
        resolve(value);
      };
      const finish = () => {
        clearTimeout(timer);
        clearInterval(glances);
        this.#waiters.delete(check);
      };
      const timer = setTimeout(() => {
        finish();
        const last = this.calls.slice(-8).map(({ method, path, status }) => `${method} ${path} ${status}`);
        const what = `Signal test server: nothing matched in ${deadlineMs} ms`;
        reject(new Error(`${what}; last calls: ${last.join('; ')}`));
      }, deadlineMs);
      // What a client has received changes without a word to this server.
      const glances = setInterval(check, 10);
      this.#waiters.add(check);
      check();
    });
  }
}
