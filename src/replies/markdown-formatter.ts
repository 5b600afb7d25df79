/**
 * Parses Markdown off the event loop, in one thread that starts with the first text and ends after a pause without
 * work. It takes 35 MB, after long texts 75 to 95, most of which the process keeps for the next thread (three
 * consecutive threads: 73, 74, 78 MB). A text that isn't parsed in time is shown as written: complete, but
 * without styles. Never rejects.
 */
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type FormattedText, plainText } from '#contracts/formatted-text.ts';
import type { Log } from '#contracts/log.ts';
import { LONGEST_PARSED } from './markdown.ts';

/** Parses Markdown in its own thread, so that long texts don't block the event loop. */
export interface MarkdownFormatter {
  format(markdown: string): Promise<FormattedText>;
  /** Returns how many texts were parsed here, and how many were given up. */
  counts(): FormatterCounts;
  /** Ends the thread; texts that are waiting or being parsed stay unformatted. */
  close(): Promise<void>;
}

export type FormatterCounts = { readonly parsed: number; readonly givenUp: number };

export type FormatterLimits = {
  /** How much processor time the parser may take for one text, ms: on a busy machine it waits most of the time. */
  readonly parseMs: number;
  /** How long a text may take in total: the thread's start, waiting and parsing, ms. */
  readonly totalMs: number;
  /** How many texts may wait. */
  readonly maxWaiting: number;
  /** The thread ends after this long without work, ms. */
  readonly restMs: number;
};

const usualLimits: FormatterLimits = { parseMs: 1_000, totalMs: 5_000, maxWaiting: 32, restMs: 60_000 };

/** Messages between the event loop and the parser thread. */
export type FormatterRequest = { readonly id: number; readonly markdown: string };

/** `cpu`: what the thread has used so far. */
export type FormatterReport = { readonly cpu: NodeJS.CpuUsage } & (
  | { readonly kind: 'ready' }
  | { readonly kind: 'formatted'; readonly id: number; readonly formatted: FormattedText }
);

type Job = {
  readonly request: FormatterRequest;
  readonly deadline: NodeJS.Timeout;
  resolve(formatted: FormattedText): void;
};
type GivenUp = 'too-long' | 'too-many' | 'too-late' | 'parser-too-slow' | 'thread-lost' | 'closed';

/** Creates the formatter; its thread starts with the first long text. */
export function createMarkdownFormatter(deps: {
  readonly log: Log;
  readonly limits?: Partial<FormatterLimits>;
}): MarkdownFormatter {
  const formatter = new ThreadedFormatter(deps.log, { ...usualLimits, ...deps.limits });
  // Closures, because callers pass single functions on, as with every stage.
  return {
    format: (markdown) => formatter.format(markdown),
    counts: () => formatter.counts(),
    close: () => formatter.close(),
  };
}

class ThreadedFormatter implements MarkdownFormatter {
  readonly #log: Log;
  readonly #limits: FormatterLimits;
  readonly #waiting = new Map<number, Job>();
  #current: Job | undefined;
  #parsing: NodeJS.Timeout | undefined;
  #resting: NodeJS.Timeout | undefined;
  #thread: Worker | undefined;
  #isReady = false;
  /** Processor time that the thread had used when it began with the current text. */
  #cpu: NodeJS.CpuUsage | undefined;
  #isClosed = false;
  #lastId = 0;
  #counts = { parsed: 0, givenUp: 0 };

  constructor(log: Log, limits: FormatterLimits) {
    this.#log = log;
    this.#limits = limits;
  }

  format(markdown: string): Promise<FormattedText> {
    const refusal = this.#refusalOf(markdown);
    if (refusal !== undefined) return Promise.resolve(this.#giveUp(markdown, refusal));
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      const deadline = setTimeout(() => this.#expire(id), this.#limits.totalMs);
      this.#waiting.set(id, { request: { id, markdown }, deadline, resolve });
      this.#processNext();
    });
  }

  counts(): FormatterCounts {
    return this.#counts;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#resting);
    for (const job of [this.#current, ...this.#waiting.values()]) if (job) this.#drop(job, 'closed');
    await this.#endThread();
  }

  #refusalOf(markdown: string): GivenUp | undefined {
    if (this.#isClosed) return 'closed';
    if (markdown.length > LONGEST_PARSED) return 'too-long';
    return this.#waiting.size >= this.#limits.maxWaiting ? 'too-many' : undefined;
  }

  #processNext(): void {
    clearTimeout(this.#resting);
    if (this.#current || this.#isClosed) return;
    const [next] = this.#waiting.values();
    if (!next) {
      this.#rest();
      return;
    }
    this.#thread ??= this.#openThread();
    if (!this.#isReady) return;
    this.#waiting.delete(next.request.id);
    this.#current = next;
    this.#allow(next, this.#limits.parseMs);
    this.#thread.ref();
    this.#thread.postMessage(next.request);
  }

  /** Gives the parser that much time, and more if it couldn't use it. */
  #allow(job: Job, ms: number): void {
    this.#parsing = setTimeout(() => void this.#judge(job), Math.max(ms, 1));
  }

  async #judge(job: Job): Promise<void> {
    // Before Node.js 24.6 only the clock tells. A thread that has ended was lost or ended with its text.
    const used = await this.#thread?.cpuUsage?.(this.#cpu).catch(() => undefined);
    if (this.#current !== job) return;
    const leftMs = used ? this.#limits.parseMs - (used.user + used.system) / 1_000 : 0;
    if (leftMs > 0) this.#allow(job, leftMs);
    else this.#cut(job, 'parser-too-slow');
  }

  #rest(): void {
    if (!this.#thread) return;
    this.#thread.unref();
    this.#resting = setTimeout(() => void this.#endThread(), this.#limits.restMs).unref();
  }

  #expire(id: number): void {
    const current = this.#current;
    if (current?.request.id === id) {
      this.#cut(current, 'too-late');
      return;
    }
    const job = this.#waiting.get(id);
    if (!job) return;
    this.#drop(job, 'too-late');
    // A thread that isn't ready even now is replaced.
    if (!this.#isReady) void this.#endThread();
    this.#processNext();
  }

  /** Ends the thread, the only way to stop a parser; the next text gets a new thread. */
  #cut(job: Job, reason: GivenUp): void {
    this.#drop(job, reason);
    void this.#endThread();
    this.#processNext();
  }

  #drop(job: Job, reason: GivenUp): void {
    this.#finish(job, this.#giveUp(job.request.markdown, reason));
  }

  #finish(job: Job, formatted: FormattedText): void {
    clearTimeout(job.deadline);
    this.#waiting.delete(job.request.id);
    if (this.#current === job) {
      clearTimeout(this.#parsing);
      this.#current = undefined;
    }
    job.resolve(formatted);
  }

  #giveUp(markdown: string, reason: GivenUp): FormattedText {
    this.#counts = { ...this.#counts, givenUp: this.#counts.givenUp + 1 };
    this.#log.info({ reason, units: markdown.length }, 'markdown.abandoned');
    return plainText(markdown.trim());
  }

  #openThread(): Worker {
    const thread = new Worker(new URL('./markdown-thread.ts', import.meta.url), {
      env: threadEnvironment(),
      resourceLimits: { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 256 },
    });
    thread.on('message', (report: FormatterReport) => {
      if (thread === this.#thread) this.#hear(report);
    });
    const onLost = (error: unknown) => {
      if (thread !== this.#thread) return;
      this.#thread = undefined;
      this.#isReady = false;
      this.#log.warn({ error }, 'markdown.thread-lost');
      const job = this.#current ?? this.#waiting.values().next().value;
      if (job) this.#drop(job, 'thread-lost');
      this.#processNext();
    };
    thread.on('error', onLost);
    thread.on('exit', onLost);
    return thread;
  }

  #hear(report: FormatterReport): void {
    this.#cpu = report.cpu;
    if (report.kind === 'ready') {
      this.#isReady = true;
    } else if (this.#current?.request.id === report.id) {
      this.#counts = { ...this.#counts, parsed: this.#counts.parsed + 1 };
      this.#finish(this.#current, report.formatted);
    }
    this.#processNext();
  }

  async #endThread(): Promise<void> {
    const thread = this.#thread;
    this.#thread = undefined;
    this.#isReady = false;
    await thread?.terminate();
  }
}

function threadEnvironment(): NodeJS.ProcessEnv {
  const folder = getCompileCacheDir();
  // Node.js appends a folder named after its version to the given one.
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) };
}
