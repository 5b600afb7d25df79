import type { Notification } from './types.ts';

type Poll = { readonly max: number; readonly timeoutMs: number };

/**
 * normal and native mode: messages stay on Signal's server until signal-cli is run to fetch them, and are
 * gone from there once it has. One signal-cli runs for an account at a time, sends included.
 */
export class Mailbox {
  #waiting: Notification[] = [];
  #wake: (() => void) | undefined;
  #giveUp: (() => void) | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #atWork = 0;
  /** Messages fetched by polls, whether or not their answer reached the caller. */
  fetched = 0;

  get waiting(): readonly Notification[] {
    return this.#waiting;
  }

  add(notification: Notification): void {
    this.#waiting.push(notification);
    this.#wake?.();
  }

  /** A signal-cli runs for the account. */
  get isBusy(): boolean {
    return this.#atWork > 0;
  }

  /** Whoever waits for messages gets what there is; what comes later waits on Signal's server. */
  interrupt(): void {
    this.#giveUp?.();
  }

  /** Runs `act` when no other signal-cli runs for the account. */
  alone<T>(act: () => T | Promise<T>): Promise<T> {
    this.#atWork += 1;
    const mine = this.#turn.then(act).finally(() => (this.#atWork -= 1));
    this.#turn = mine.catch(() => undefined);
    return mine;
  }

  /**
   * Takes what is there; waits until nothing came for `timeoutMs` (below 0: for ever), or until there
   * are `max` (0: no limit).
   */
  fetch({ max, timeoutMs }: Poll): Promise<readonly Notification[]> {
    return this.alone(async () => {
      const taken: Notification[] = [];
      for (;;) {
        const room = max > 0 ? max - taken.length : this.#waiting.length;
        taken.push(...this.#waiting.splice(0, room));
        if (max > 0 && taken.length >= max) break;
        if (!(await this.#arrival(timeoutMs))) break;
      }
      this.fetched += taken.length;
      return taken;
    });
  }

  /** Whether something arrived within the time. */
  #arrival(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (hasCome: boolean) => {
        clearTimeout(timer);
        this.#wake = undefined;
        this.#giveUp = undefined;
        resolve(hasCome);
      };
      const timer = ms < 0 ? undefined : setTimeout(() => finish(false), ms);
      this.#wake = () => finish(true);
      this.#giveUp = () => finish(false);
    });
  }
}
