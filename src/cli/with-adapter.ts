import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { ChannelAdapter } from '#contracts/channel.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { ConfiguredAccount } from '../channel-host/configured-accounts.ts';
import type { Config } from '../config/config.ts';
import { revealSettings } from '../config/secret.ts';
import { outboundFetch } from '../http/outbound-fetch.ts';

/**
 * Creates the channel's adapter for as long as `use` takes, even alongside a running gateway. It doesn't receive
 * events. Throws ParleyError `config_invalid` when the channel is off or rejects its settings.
 */
export async function withAdapter<T>(
  config: Config,
  { entry, line, accountName, state }: ConfiguredAccount,
  use: (adapter: ChannelAdapter) => Promise<T>,
): Promise<T> {
  if (state.kind === 'off') throw new ParleyError('config_invalid', `${line} is off: ${state.reason}.`);
  const definition = await entry.load();
  const settings = definition.configSchema.safeParse(revealSettings(state.settings));
  const place =
    accountName === undefined ? `channels.${entry.id}` : `channels.${entry.id}.accounts.${accountName}`;
  if (!settings.success)
    throw new ParleyError(
      'config_invalid',
      settings.error.issues
        .map((issue) => `${[place, ...issue.path.map(String)].join('.')}: ${issue.message}`)
        .join('\n'),
    );
  const own = join(config.dataDir, 'channels', line);
  const isThere = (await stat(own).catch(() => undefined))?.isDirectory() === true;
  // Before the first start the channel has no folder, and there is nothing yet that it would keep there.
  const dataDir = isThere ? own : await mkdtemp(join(tmpdir(), 'parley-doctor-'));
  const adapter = definition.create(settings.data, {
    log: noLog,
    clock: systemClock,
    fetch: outboundFetch,
    dataDir,
  });
  try {
    return await use(adapter);
  } finally {
    await adapter.stop();
    if (!isThere) await rm(dataDir, { recursive: true, force: true });
  }
}

/** The result contains errors; log lines would interrupt the table. */
const noLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => noLog,
};
