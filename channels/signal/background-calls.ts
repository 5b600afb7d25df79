import type { Log } from '#contracts/log.ts';

/** More than this would be a backlog that nobody needs. */
const mostWaiting = 200;

/**
 * Small calls that nobody waits for (read receipts, tidying up), one at a time so they don't delay sends. What
 * fails is left out: each is a courtesy.
 */
export class BackgroundCalls {
  readonly #log: Log;
  readonly #waiting: { readonly name: string; run(signal: AbortSignal): Promise<unknown> }[] = [];
  #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  add(name: string, run: (signal: AbortSignal) => Promise<unknown>): void {
    if (this.#waiting.length >= mostWaiting) this.#waiting.shift();
    this.#waiting.push({ name, run });
    this.#running ??= this.#work().finally(() => {
      this.#running = undefined;
    });
  }

  /** Drops what waits; a running call is aborted. */
  async stop(): Promise<void> {
    this.#waiting.length = 0;
    this.#stopping.abort();
    await this.#running;
    this.#stopping = new AbortController();
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    for (let call = this.#waiting.shift(); call; call = this.#waiting.shift()) {
      const { name } = call;
      await call
        .run(signal)
        .catch((error: unknown) =>
          this.#log.debug({ name, error: String(error) }, 'signal.background-call-failed'),
        );
      if (signal.aborted) return;
    }
  }
}
