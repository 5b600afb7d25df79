import type { Log } from '#contracts/log.ts';

/** More lowPriority than this would be a backlog that nobody needs. */
const maxLowPriority = 200;

type Call = { readonly name: string; run(signal: AbortSignal): Promise<unknown> };

/**
 * Small calls that nothing awaits, made one at a time so that they don't delay sends: questions to the server, and
 * lowPriority (read receipts, tidying up). A failed call isn't repeated. Questions go first; lowPriority never crowd them
 * out.
 */
export class BackgroundCalls {
  readonly #log: Log;
  /** By name, so that a question asked again before its call was made leads to one call. */
  readonly #questions = new Map<string, Call>();
  readonly #lowPriority: Call[] = [];
  #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  ask(name: string, run: Call['run']): void {
    this.#questions.set(name, { name, run });
    this.#start();
  }

  /** Makes a call whose loss does no harm; if there are too many, the oldest are dropped. */
  add(name: string, run: Call['run']): void {
    if (this.#lowPriority.length >= maxLowPriority) this.#lowPriority.shift();
    this.#lowPriority.push({ name, run });
    this.#start();
  }

  /** Drops the waiting calls and aborts a running one. */
  async stop(): Promise<void> {
    this.#questions.clear();
    this.#lowPriority.length = 0;
    this.#stopping.abort();
    this.#stopping = new AbortController();
    await this.#running;
  }

  #start(): void {
    this.#running ??= this.#work();
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    for (let call = this.#next(); call && !signal.aborted; call = this.#next()) {
      const { name } = call;
      await call
        .run(signal)
        .catch((error: unknown) =>
          this.#log.debug({ name, error: String(error) }, 'signal.background-call-failed'),
        );
    }
    // In the same step: a call that is added from here on has to start a new worker.
    this.#running = undefined;
  }

  #next(): Call | undefined {
    const [question] = this.#questions.values();
    if (question === undefined) return this.#lowPriority.shift();
    this.#questions.delete(question.name);
    return question;
  }
}
