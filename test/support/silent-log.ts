import type { Log } from '../../src/contracts/log.ts';

/** For tests that check states, not log lines. */
export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
};
