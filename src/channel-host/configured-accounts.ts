import type { ChannelEntry } from '#contracts/channel.ts';
import { connectionName } from '#contracts/ids.ts';
import type { ChannelSettings, Config } from '../config/config.ts';

/** One account of a network, as it is configured. */
export type ConfiguredAccount = {
  readonly entry: ChannelEntry;
  /** `telegram`, or `telegram.work` for a named account. */
  readonly line: string;
  readonly accountName: string | undefined;
  readonly state:
    | { readonly kind: 'on'; readonly settings: ChannelSettings }
    /** `reason` says what to set to enable it. */
    | { readonly kind: 'off'; readonly reason: string };
};

/** Returns every account of the channels in their order; a network that is off appears once. */
export function configuredAccounts(
  channels: readonly ChannelEntry[],
  config: Pick<Config, 'channels'>,
): readonly ConfiguredAccount[] {
  const settingsOf = new Map<string, ChannelSettings>(Object.entries(config.channels));
  return channels.flatMap((entry) => {
    const settings = settingsOf.get(entry.id);
    const named = Object.entries(settings?.accounts ?? {}).map(([accountName, own]) =>
      accountOf(entry, own, accountName),
    );
    // A network may have named accounts only.
    const isNamedOnly = named.length > 0 && !settings?.enabled;
    return isNamedOnly ? named : [accountOf(entry, settings), ...named];
  });
}

function accountOf(
  entry: ChannelEntry,
  settings: ChannelSettings | undefined,
  accountName?: string,
): ConfiguredAccount {
  const state = settings?.enabled
    ? ({ kind: 'on', settings } as const)
    : ({ kind: 'off', reason: whyOff(entry, settings, accountName) } as const);
  return { entry, line: connectionName(entry.id, accountName), accountName, state };
}

function whyOff(
  { id, needs }: ChannelEntry,
  settings: ChannelSettings | undefined,
  accountName?: string,
): string {
  if (accountName !== undefined) {
    const { needs: variable } = settings ?? {};
    const place = `channels.${id}.accounts.${accountName}`;
    // The network's own setting turns all of its accounts off.
    return variable === undefined
      ? `${place}.enabled or channels.${id}.enabled is false`
      : `set ${variable} to enable`;
  }
  const isMissing = needs !== undefined && (settings?.token ?? settings?.apiUrl) === undefined;
  return isMissing ? `set ${needs} to enable` : `channels.${id}.enabled is false`;
}
