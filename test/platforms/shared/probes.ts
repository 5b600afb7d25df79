import { patienceMs } from '../../support/patience.ts';

/** Conditions that a test waits for; they are checked whenever something changes. */
export class Probes {
  readonly #waiting = new Set<() => void>();
  readonly #soFar: () => string;

  /** `soFar`: what the error says to a test that waited in vain. */
  constructor(soFar: () => string) {
    this.#soFar = soFar;
  }

  changed(): void {
    for (const check of [...this.#waiting]) check();
  }

  /** Resolves with the first value of `probe` that isn't undefined or false. Rejects after `deadlineMs`. */
  waitFor<T>(probe: () => T | undefined | false, deadlineMs = patienceMs): Promise<T> {
    return new Promise((resolve, reject) => {
      const check = () => {
        const value = probe();
        if (value === undefined || value === false) return;
        finish();
        resolve(value);
      };
      const finish = () => {
        clearTimeout(timer);
        this.#waiting.delete(check);
      };
      const timer = setTimeout(() => {
        finish();
        reject(new Error(`nothing matched within ${deadlineMs} ms; ${this.#soFar()}`));
      }, deadlineMs);
      this.#waiting.add(check);
      check();
    });
  }
}
