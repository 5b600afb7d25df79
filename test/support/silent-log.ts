import type { Log } from '../../src/contracts/log.ts';

/** For tests that check states, not log lines. */
export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
};

/** A log whose lines a test reads: the event and its fields as JSON. */
export function recordingLog(): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = [];
  const write = (fields: object, event: string) => void lines.push(`${event} ${JSON.stringify(fields)}`);
  const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };
  return { log, lines };
}
