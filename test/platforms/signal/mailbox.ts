import type { Notification } from './types.ts';

type Poll = { readonly max: number; readonly timeoutMs: number };

/**
 * normal and native mode: messages stay on Signal's server until signal-cli is run to fetch them, and are then gone
 * from there. Only one signal-cli runs for an account at a time, sends included.
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

  /** Whether a signal-cli is running for the account. */
  get isBusy(): boolean {
    return this.#atWork > 0;
  }

  /** Gives a waiting poll what there is; later messages wait on Signal's server. */
  interrupt(): void {
    this.#giveUp?.();
  }

  /** Runs `act` once no other signal-cli is running for the account. */
  alone<T>(act: () => T | Promise<T>): Promise<T> {
    this.#atWork += 1;
    const mine = this.#turn.then(act).finally(() => (this.#atWork -= 1));
    this.#turn = mine.catch(() => undefined);
    return mine;
  }

  /**
   * Takes what is there. Waits until nothing has come for `timeoutMs` (below 0: forever), or until there are `max`
   * messages (0: no limit).
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

  /** Resolves with whether something arrived in time. */
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
