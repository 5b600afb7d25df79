import type { ChannelAdapter, ChannelEntry } from '#contracts/channel.ts';
import type { Config } from '../../config/config.ts';
import { settingsOf, withAdapter } from '../with-adapter.ts';
import { type DoctorCheck, failed, ok } from './check.ts';

const timeoutMs = 20_000;

/** Asks each network that is on who the bot is, and what its own checks find. */
export async function checkChannels(
  config: Config,
  channels: readonly ChannelEntry[],
): Promise<readonly DoctorCheck[]> {
  return (await Promise.all(channels.map((entry) => checkChannel(config, entry)))).flat();
}

async function checkChannel(config: Config, entry: ChannelEntry): Promise<readonly DoctorCheck[]> {
  const { id, needs, localPeer } = entry;
  const settings = settingsOf(config, id);
  if (!settings?.enabled) return [ok(id, needs === undefined ? 'off' : `off; it needs ${needs}`)];
  if (localPeer !== undefined) return [ok(id, 'served by the gateway itself')];
  try {
    return await withAdapter(config, entry, async (adapter) => {
      const signal = AbortSignal.timeout(timeoutMs);
      const account = await checkAccount(id, adapter, signal);
      const found = (await adapter.checks?.check(signal)) ?? [];
      return [account, ...found.map((check) => ({ ...check, name: `${id} ${check.name}` }))];
    });
  } catch (error) {
    return [failed(id, messageOf(error), `correct channels.${id} in the configuration`)];
  }
}

async function checkAccount(id: string, adapter: ChannelAdapter, signal: AbortSignal): Promise<DoctorCheck> {
  try {
    const { name } = await adapter.identify(signal);
    return ok(id, `on, as ${name}`);
  } catch (error) {
    return failed(
      id,
      messageOf(error),
      'the message says what is wrong; without the network nothing comes in',
    );
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
