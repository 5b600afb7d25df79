import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChannelAdapter, ChannelEntry } from '#contracts/channel.ts';
import { systemClock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { ChannelSettings, Config } from '../config/config.ts';
import { revealSettings } from '../config/secret.ts';
import { leanFetch } from '../http/lean-fetch.ts';

/** What core knows of a channel's settings; undefined for a channel that has none. */
export function settingsOf(config: Config, id: string): ChannelSettings | undefined {
  return new Map(Object.entries(config.channels)).get(id);
}

/**
 * Makes the channel's adapter beside a gateway that may run, for as long as `use` takes. It does not
 * receive. Throws ParleyError `config_invalid` when the channel refuses its settings.
 */
export async function withAdapter<T>(
  config: Config,
  { id, load }: ChannelEntry,
  use: (adapter: ChannelAdapter) => Promise<T>,
): Promise<T> {
  const definition = await load();
  const settings = definition.configSchema.safeParse(revealSettings(settingsOf(config, id) ?? {}));
  if (!settings.success)
    throw new ParleyError(
      'config_invalid',
      settings.error.issues
        .map((issue) => `${['channels', id, ...issue.path.map(String)].join('.')}: ${issue.message}`)
        .join('\n'),
    );
  const own = join(config.dataDir, 'channels', id);
  const isThere = (await stat(own).catch(() => undefined))?.isDirectory() === true;
  // Before the first start it has no folder; nothing that it would keep there is known yet.
  const dataDir = isThere ? own : await mkdtemp(join(tmpdir(), 'parley-doctor-'));
  const adapter = definition.create(settings.data, {
    log: noLog,
    clock: systemClock,
    fetch: leanFetch,
    dataDir,
  });
  try {
    return await use(adapter);
  } finally {
    await adapter.stop();
    if (!isThere) await rm(dataDir, { recursive: true, force: true });
  }
}

/** What goes wrong is in the result; lines of a log would stand between those of the table. */
const noLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => noLog,
};
