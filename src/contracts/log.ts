/** An event name and fields: `log.info({ runId, turns }, 'run.finished')`. No message bodies, no secrets. */
export interface Log {
  debug(fields: object, event: string): void;
  info(fields: object, event: string): void;
  warn(fields: object, event: string): void;
  error(fields: object, event: string): void;
  child(fields: object): Log;
}
