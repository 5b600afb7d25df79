import { once } from 'node:events';
import type { Writable } from 'node:stream';
import pino from 'pino';
import type { Log } from '#contracts/log.ts';
import type { LogFile } from './log-file.ts';
import { createRedactor, type Redactor, stripLogLine } from './redaction.ts';

export type LoggerOptions = {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  /** Lines for people instead of JSON. */
  readonly isPretty: boolean;
  /** Values that must never appear; more can be added later. */
  readonly redactor?: Redactor;
  /** Where to write instead of standard output: a file path or a stream. */
  readonly destination?: string | Writable;
  /** Also receives every line, as JSON. */
  readonly file?: LogFile;
};

/** The log of a process, with what changes it while it runs. */
export type Logger = {
  readonly log: Log;
  readonly redactor: Redactor;
  /** Logs lines of this level and above from now on. */
  setLevel(level: LoggerOptions['level']): void;
  /** Writes lines still in memory, unless their reader has stopped. Call it last; later lines are lost. */
  close(): Promise<void>;
};

type Sink = { write(line: string): void; close(): Promise<void> };

/** Creates the logger. Every line passes the redactor on its way out, including error stacks. */
export async function createLogger(options: LoggerOptions): Promise<Logger> {
  const redactor = options.redactor ?? createRedactor();
  const sink = await openSink(options, (lines) => logger.warn({ lines }, 'log.lines-dropped'));
  const logger = pino(
    {
      level: options.level,
      messageKey: 'event',
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeFault, error: describeFault, cause: describeFault },
    },
    {
      write: (line: string) => {
        const cleaned = redactor.redact(stripLogLine(line));
        options.file?.write(cleaned);
        sink.write(cleaned);
      },
    },
  );
  const close = async () => {
    await Promise.all([sink.close(), options.file?.close()]);
  };
  const setLevel = (level: LoggerOptions['level']) => {
    logger.level = level;
  };
  return { log: asLog(logger), redactor, setLevel, close };
}

/** Most characters kept for a reader that has stopped, such as a terminal scrolled back; the rest is dropped. */
const maxWaiting = 4 * 1024 * 1024;
/** How long closing waits for such a reader, ms. */
const closeMs = 1_000;

async function openSink(options: LoggerOptions, onDropped: (lines: number) => void): Promise<Sink> {
  const raw = options.destination ?? process.stdout.fd;
  if (typeof raw === 'object') return prettify(options, raw);
  let isGivenUp = false;
  const file = pino.destination({
    ...{ dest: raw, sync: false, mkdir: true, mode: 0o600 },
    maxLength: maxWaiting,
    retryEAGAIN: () => !isGivenUp,
  });
  await once(file, 'ready');
  let isOver = false;
  let dropped = 0;
  // A closed pipe (`parley | head`) or a full disk must not end the gateway; those lines are lost. After a closed pipe
  // the library does nothing more and never reports its end.
  file.on('error', (error: NodeJS.ErrnoException) => {
    isOver ||= error.code === 'EPIPE';
  });
  file.on('drop', () => {
    dropped += 1;
  });
  file.on('drain', () => {
    const lines = dropped;
    dropped = 0;
    if (lines > 0) onDropped(lines);
  });
  const close = () =>
    new Promise<void>((resolve) => {
      if (isOver) return resolve();
      isOver = true;
      // The library would wait forever, and then again when the process exits.
      const timer = setTimeout(() => {
        isGivenUp = true;
        file.destroy();
      }, closeMs);
      const ended = () => {
        clearTimeout(timer);
        resolve();
      };
      file.on('write', () => timer.refresh());
      file.once('error', ended);
      file.once('close', ended);
      file.end();
    });
  const sink = await prettify(options, { write: (line: string) => isOver || file.write(line) });
  return { write: sink.write, close: () => sink.close().then(close) };
}

type LineTarget = { write(line: string): unknown };

async function prettify(options: LoggerOptions, target: LineTarget): Promise<Sink> {
  if (!options.isPretty) {
    return { write: (line) => void target.write(line), close: () => Promise.resolve() };
  }
  const isColored = options.destination === undefined && process.stdout.hasColors?.() === true;
  const render = await loadLineRenderer({ isColored, withDate: false });
  return { write: (line) => void target.write(render(line)), close: () => Promise.resolve() };
}

/** Returns a function that turns a line of JSON into one for people, with the time in this machine's zone. */
export async function loadLineRenderer(options: {
  readonly isColored: boolean;
  readonly withDate: boolean;
}): Promise<(line: string) => string> {
  const { prettyFactory } = await import('pino-pretty');
  return prettyFactory({
    messageKey: 'event',
    colorize: options.isColored,
    ignore: 'pid',
    translateTime: options.withDate ? 'SYS:yyyy-mm-dd HH:MM:ss' : 'SYS:HH:MM:ss',
    singleLine: true,
  });
}

function asLog(logger: pino.Logger): Log {
  return {
    debug: (fields, event) => logger.debug(fields, event),
    info: (fields, event) => logger.info(fields, event),
    warn: (fields, event) => logger.warn(fields, event),
    error: (fields, event) => logger.error(fields, event),
    child: (fields) => asLog(logger.child(fields)),
  };
}

const deepestCause = 5;

/**
 * Returns the name, message, code, stack and causes of a fault, but no other property: platform libraries attach
 * complete requests, including message bodies, to their errors.
 */
function describeFault(fault: unknown, depth = 0): unknown {
  if (!(fault instanceof Error)) return fault;
  const code: unknown = Reflect.get(fault, 'code');
  return {
    name: fault.name,
    message: fault.message,
    ...(code !== undefined && { code: String(code) }),
    stack: fault.stack,
    ...(fault.cause !== undefined &&
      depth < deepestCause && { cause: describeFault(fault.cause, depth + 1) }),
  };
}
