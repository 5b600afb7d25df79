import type { ChannelId } from './ids.ts';

/**
 * Names one configured connection: `telegram`, or `telegram.work` for a named account. Used in lists, in the
 * log, as the account's folder and in the addresses of its webhooks. Channel ids contain no dot.
 */
export function connectionName(channel: ChannelId, accountName: string | undefined): string {
  return accountName === undefined ? channel : `${channel}.${accountName}`;
}

/** Returns the channel of a connection's name: `telegram` for `telegram.work`. */
export function channelOfConnection(line: string): string {
  return line.split('.', 1)[0] ?? line;
}
