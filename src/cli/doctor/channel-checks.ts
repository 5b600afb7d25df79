import type { ChannelAdapter, ChannelEntry } from '#contracts/channel.ts';
import { type ConfiguredAccount, configuredAccounts } from '../../channel-host/configured-accounts.ts';
import type { Config } from '../../config/config.ts';
import { withAdapter } from '../with-adapter.ts';
import { type DoctorCheck, failed, ok } from './check.ts';

const timeoutMs = 20_000;

/** Asks each enabled network who the bot is, and runs the network's own checks. */
export async function checkChannels(
  config: Config,
  channels: readonly ChannelEntry[],
): Promise<readonly DoctorCheck[]> {
  const accounts = configuredAccounts(channels, config);
  return (await Promise.all(accounts.map((account) => checkChannel(config, account)))).flat();
}

/** Asks one network who the bot is; the first check is its answer. */
export async function checkChannel(
  config: Config,
  account: ConfiguredAccount,
): Promise<readonly DoctorCheck[]> {
  const { entry, line, state } = account;
  if (state.kind === 'off') return [ok(line, `off; ${state.reason}`)];
  if (entry.localPeer !== undefined) return [ok(line, 'served by the gateway itself')];
  try {
    return await withAdapter(config, account, async (adapter) => {
      const signal = AbortSignal.timeout(timeoutMs);
      const who = await checkAccount(line, adapter, signal);
      const found = (await adapter.checks?.check(signal)) ?? [];
      return [who, ...found.map((check) => ({ ...check, name: `${line} ${check.name}` }))];
    });
  } catch (error) {
    return [failed(line, messageOf(error), `correct channels.${entry.id} in the configuration`)];
  }
}

async function checkAccount(
  line: string,
  adapter: ChannelAdapter,
  signal: AbortSignal,
): Promise<DoctorCheck> {
  try {
    const { name } = await adapter.identify(signal);
    return ok(line, `signed in as ${name}`);
  } catch (error) {
    return failed(line, messageOf(error), 'fix the cause named above; until then no messages arrive');
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
