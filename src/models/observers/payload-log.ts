/**
 * The exact requests and answers of model calls, for operators who want to know what a model was told. Off by default.
 * Lines are built when the event loop is free, one message at a time, and written without delaying a call; calls that
 * arrive faster than that are only counted. Secrets are replaced by value, codes by their pattern.
 */
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { ModelEvent, ModelRequest } from '#contracts/model.ts';
import type { RotatingFile } from '../../logging/rotating-file.ts';
import type { CallObserver, CallOutcome, ObservedCall } from './call-observer.ts';

/** An observer that writes until it is closed. */
export type PayloadLog = CallObserver & {
  /** Writes what is waiting. */
  close(): Promise<void>;
};

/** How many calls may wait to be written. */
const maxWaiting = 64;
/** Longest line, UTF-16 units: the oldest messages of a longer request are left out. */
const longestLine = 4_000_000;

type Entry = {
  readonly call: ObservedCall;
  readonly answer: Answer;
  readonly outcome: CallOutcome;
  readonly at: number;
  readonly durationMs: number;
};

/** Creates the log over its file. */
export function createPayloadLog(deps: {
  readonly file: RotatingFile;
  readonly clock: Clock;
  readonly log: Log;
  redact(text: string): string;
}): PayloadLog {
  const { file, clock, log, redact } = deps;
  const waiting: Entry[] = [];
  let dropped = 0;
  let writing: Promise<void> | undefined;

  const write = async () => {
    for (let entry = waiting.shift(); entry; entry = waiting.shift()) {
      const line = await lineOf(entry, { redact, dropped });
      dropped = 0;
      await file.append(line);
    }
  };
  const add = (entry: Entry) => {
    if (waiting.length >= maxWaiting) {
      dropped += 1;
      return;
    }
    waiting.push(entry);
    writing ??= nextTurn()
      .then(write)
      .catch((error: unknown) => log.warn({ error }, 'payload-log.failed'))
      .finally(() => {
        writing = undefined;
      });
  };
  return {
    begin: (call) => {
      const at = clock.now();
      const answer = new Answer();
      return {
        event: (event) => answer.take(event),
        end: (outcome) => add({ call, answer, outcome, at, durationMs: clock.now() - at }),
      };
    },
    close: async () => {
      await writing;
      await file.close();
    },
  };
}

/** The text of a stream so far, along with its reasoning and calls. */
class Answer {
  text = '';
  thinking = '';
  readonly toolCalls: { readonly id: string; readonly name: string; json: string }[] = [];

  take(event: ModelEvent): void {
    switch (event.type) {
      case 'content_delta':
        this.text += event.text;
        return;
      case 'thinking_delta':
        this.thinking += event.thinking;
        return;
      case 'tool_use_start':
        this.toolCalls.push({ id: event.id, name: event.name, json: '' });
        return;
      case 'tool_use_delta': {
        const call = this.toolCalls.find(({ id }) => id === event.id);
        if (call) call.json += event.json;
        return;
      }
      default:
        return;
    }
  }
}

async function lineOf(
  entry: Entry,
  { redact, dropped }: { redact(text: string): string; readonly dropped: number },
): Promise<string> {
  const { call, answer, outcome, at, durationMs } = entry;
  const { messages, ...rest } = call.request;
  const json = (value: unknown) => JSON.stringify(value, (_key, part: unknown) => shown(part, redact));
  const { provider, model, subject } = call;
  const head = { at: new Date(at).toISOString(), durationMs, ...subject, provider, model, outcome };
  const said = { text: answer.text, thinking: answer.thinking, toolCalls: answer.toolCalls };
  const pieces = [json({ ...head, ...(dropped > 0 && { dropped }), answer: said }), json(rest)];
  const { lines, omitted } = await newestOf(messages, json);
  const [first = '{}', request = '{}'] = pieces;
  const asked = `${request.slice(0, -1)},"omitted":${omitted},"messages":[${lines.join()}]}`;
  return `${first.slice(0, -1)},"request":${asked}}\n`;
}

/** Returns the newest messages that fit on a line, as JSON, in order. */
async function newestOf(
  messages: ModelRequest['messages'],
  json: (value: unknown) => string,
): Promise<{ readonly lines: readonly string[]; readonly omitted: number }> {
  const lines: string[] = [];
  let room = longestLine;
  for (const message of messages.toReversed()) {
    const line = json(message);
    room -= line.length;
    if (room < 0) break;
    lines.push(line);
    await nextTurn();
  }
  return { lines: lines.reverse(), omitted: messages.length - lines.length };
}

/** Replaces images by their size, and removes the secrets of every text before it is escaped. */
function shown(part: unknown, redact: (text: string) => string): unknown {
  if (typeof part === 'string') return redactCodes(redact(part));
  if (typeof part !== 'object' || part === null || !('base64' in part)) return part;
  return { ...part, base64: `${String(part.base64).length} characters` };
}

/** Removes pairing and link codes in Parley's format (`commands/one-time-code.ts`), with or without a gap. */
function redactCodes(text: string): string {
  return text.replace(/(?<![A-Z0-9])[A-HJ-NP-Z2-9]{4}[ -]?[A-HJ-NP-Z2-9]{4}(?![A-Z0-9])/g, '[code]');
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
