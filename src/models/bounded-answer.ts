/**
 * Limits the answer of a model's server before an SDK collects and parses it: the size of an event and of the
 * entire answer, and how many events may be read before other work gets a turn of the event loop.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

export type AnswerLimits = {
  readonly eventBytes: number;
  readonly eventLines: number;
  readonly answerBytes: number;
  readonly eventsPerTurn: number;
  readonly bytesPerTurn: number;
};

const usualLimits: AnswerLimits = {
  // Fits a tool call with the longest accepted arguments, with every character escaped.
  eventBytes: 4 * 1024 * 1024,
  eventLines: 50_000,
  // A model's longest answer: 128,000 tokens, each with 1,000 bytes around it.
  answerBytes: 128 * 1024 * 1024,
  // Each event takes 20 µs from here to the transcript.
  eventsPerTurn: 100,
  // Some servers send long events: 100 kB of text take 40 ms.
  bytesPerTurn: 16_000,
};

/** The error of reading an answer that exceeds a limit; its message says which. */
class AnswerTooLarge extends RangeError {}

/** Says which limit was exceeded by the answer that ended in `error`; undefined for any other error. */
export function limitExceededIn(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause)
    if (at instanceof AnswerTooLarge) return at.message;
  return undefined;
}

/** Returns a `fetch` with limited answers: reading past a limit throws, see `limitExceededIn`. */
export function withBoundedAnswers(
  fetch: typeof globalThis.fetch,
  limits: AnswerLimits = usualLimits,
): typeof globalThis.fetch {
  return async (input, init) => bounded(await fetch(input, init), limits);
}

/** Returns as much of a `Response` as the SDKs use. They read its body as an iterable if it is one. */
function bounded(response: Response, limits: AnswerLimits): Response {
  const { ok, status, statusText, url, redirected, headers, body } = response;
  const hasEvents = headers.get('content-type')?.startsWith('text/event-stream') === true;
  const pieces = { [Symbol.asyncIterator]: () => inTurns(body ?? [], new Meter(limits, hasEvents)) };
  const text = async () => {
    const read: Uint8Array[] = [];
    for await (const piece of pieces) read.push(piece);
    return Buffer.concat(read).toString();
  };
  const json = async () => JSON.parse(await text());
  const answer = { ok, status, statusText, url, redirected, headers, body: pieces, text, json };
  return answer as unknown as Response;
}

async function* inTurns(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  meter: Meter,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = 0; at < chunk.length; at += 1) {
      if (!meter.endsTurn(chunk[at] ?? 0)) continue;
      yield chunk.subarray(from, at + 1);
      from = at + 1;
      await nextTurn();
    }
    if (from < chunk.length) yield chunk.subarray(from);
  }
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/** Measures an answer byte by byte. An event ends with an empty line; an answer without events counts as one. */
class Meter {
  readonly #limits: AnswerLimits;
  readonly #hasEvents: boolean;
  #answerBytes = 0;
  #eventBytes = 0;
  #eventLines = 0;
  #lineBytes = 0;
  #last = 0;
  #turnEvents = 0;
  #turnBytes = 0;

  constructor(limits: AnswerLimits, hasEvents: boolean) {
    this.#limits = limits;
    this.#hasEvents = hasEvents;
  }

  /** Takes the next byte, and says whether other work gets a turn after it. */
  endsTurn(byte: number): boolean {
    this.#answerBytes += 1;
    this.#eventBytes += 1;
    if (byte === lineFeed) this.#eventLines += 1;
    this.#turnBytes += 1;
    this.#check();
    if (!this.#endsEvent(byte)) return false;
    this.#turnEvents += 1;
    const { eventsPerTurn, bytesPerTurn } = this.#limits;
    if (this.#turnEvents < eventsPerTurn && this.#turnBytes < bytesPerTurn) return false;
    this.#turnEvents = 0;
    this.#turnBytes = 0;
    return true;
  }

  #check(): void {
    const { answerBytes, eventBytes, eventLines } = this.#limits;
    const tooLarge = (what: string) => new AnswerTooLarge(`the answer is too large: ${what}`);
    if (this.#answerBytes > answerBytes) throw tooLarge(`more than ${answerBytes} bytes`);
    if (this.#eventBytes > eventBytes) throw tooLarge(`more than ${eventBytes} bytes in one event`);
    if (this.#eventLines > eventLines) throw tooLarge(`more than ${eventLines} lines in one event`);
  }

  #endsEvent(byte: number): boolean {
    const isSecondHalf = byte === lineFeed && this.#last === carriageReturn;
    this.#last = byte;
    if (isSecondHalf) return false;
    if (byte !== lineFeed && byte !== carriageReturn) {
      this.#lineBytes += 1;
      return false;
    }
    const isEmptyLine = this.#lineBytes === 0;
    this.#lineBytes = 0;
    if (!this.#hasEvents || !isEmptyLine) return false;
    this.#eventBytes = 0;
    this.#eventLines = 0;
    return true;
  }
}
