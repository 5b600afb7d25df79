// Several accounts on one network: `channels.<network>.accounts`. Each inherits the settings of its
// network, and reads its secret from its own variable: the network's variable plus `_<NAME>`, or the
// one that `tokenEnv` names.
import type { ChannelSettings } from './config.ts';
import { accountNetworks, type Credentials, type Network, type NetworkName } from './credentials.ts';
import { type Environment, variableNamed } from './environment.ts';
import type { Problem } from './problem.ts';
import type { FileSettings } from './schema.ts';
import { findSecretProblem, Secret } from './secret.ts';

const networkNames = Object.keys(accountNetworks) as readonly NetworkName[];

export type ChannelAccounts = {
  readonly accounts: Readonly<Record<NetworkName, Readonly<Record<string, ChannelSettings>>>>;
  readonly problems: readonly Problem[];
};

/** Returns the default variable of an account's secret. */
export function accountVariable(network: NetworkName, account: string): string {
  return `${accountNetworks[network].variable}_${account.toUpperCase().replaceAll('-', '_')}`;
}

export function readChannelAccounts(
  channels: FileSettings['channels'],
  environment: Environment,
  credentials: Credentials,
): ChannelAccounts {
  const problems: Problem[] = [];
  const secrets: NamedSecret[] = namedSecrets(credentials);
  const accounts = networkNames.map((network) => {
    const entries = Object.entries(channels[network].accounts).map(([name, account]) => {
      const read = readAccount({ network, name, account, top: channels[network] }, environment);
      problems.push(...read.problems);
      if (read.secret) secrets.push({ where: `${read.variable} in the environment`, secret: read.secret });
      return [name, read.settings] as const;
    });
    problems.push(...findStrayVariables(network, channels, environment));
    return [network, Object.fromEntries(entries)] as const;
  });
  problems.push(...findDoubles(secrets));
  // Every network has an entry.
  return { accounts: Object.fromEntries(accounts) as ChannelAccounts['accounts'], problems };
}

type AccountSource = {
  readonly network: NetworkName;
  readonly name: string;
  readonly account: FileSettings['channels'][NetworkName]['accounts'][string];
  readonly top: FileSettings['channels'][NetworkName];
};

function readAccount({ network, name, account, top }: AccountSource, environment: Environment) {
  const { kind, fix, setting, isRequired, switchedBy, own }: Network = accountNetworks[network];
  const { tokenEnv, ...rest } = account;
  const variable = tokenEnv ?? accountVariable(network, name);
  const value = variableNamed(variable, environment);
  const problem = value === undefined ? undefined : findSecretProblem(value, kind);
  const problems: Problem[] = [];
  if (problem !== undefined)
    problems.push({ where: `${variable} in the environment`, what: `${problem}; ${fix}` });
  const secret = value === undefined ? undefined : new Secret(value);
  const inherited = Object.entries(top).filter(([key]) => key !== 'accounts' && !own.includes(key));
  const isPossible = isRequired ? secret !== undefined : 'apiUrl' in top || 'apiUrl' in rest;
  const needed = switchedBy ?? variable;
  if (!isPossible && account.enabled === true)
    problems.push({
      where: `channels.${network}.accounts.${name}`,
      what: `is on, but there is no ${isRequired ? 'token' : 'address'}; set ${needed} in the environment, or turn it off`,
    });
  const settings: ChannelSettings = {
    ...Object.fromEntries(inherited),
    ...rest,
    enabled: top.enabled !== false && (account.enabled ?? isPossible),
    ...(secret && { [setting]: secret }),
    ...(!isPossible && { needs: needed }),
  };
  return { settings, secret, variable, problems };
}

/** Finds secrets without an account: their bots would silently stay offline. */
function findStrayVariables(
  network: NetworkName,
  channels: FileSettings['channels'],
  environment: Environment,
): readonly Problem[] {
  const { accounts } = channels[network];
  const taken = new Set(
    Object.entries(accounts).map(([name, { tokenEnv }]) => tokenEnv ?? accountVariable(network, name)),
  );
  const start = `${accountNetworks[network].variable}_`;
  return Object.keys(environment.others ?? {}).flatMap((variable) => {
    if (!variable.startsWith(start) || taken.has(variable)) return [];
    const name = variable.slice(start.length).toLowerCase();
    const what = `belongs to no account; add "${name}": {} to channels.${network}.accounts, or unset it`;
    return [{ where: `${variable} in the environment`, what }];
  });
}

type NamedSecret = { readonly where: string; readonly secret: Secret };

function namedSecrets({ telegramToken, discordToken }: Credentials): NamedSecret[] {
  return [
    ...(telegramToken ? [{ where: 'TELEGRAM_BOT_TOKEN in the environment', secret: telegramToken }] : []),
    ...(discordToken ? [{ where: 'DISCORD_BOT_TOKEN in the environment', secret: discordToken }] : []),
  ];
}

/** Finds a bot that is configured twice: its two connections would take each other's messages. */
function findDoubles(secrets: readonly NamedSecret[]): readonly Problem[] {
  return secrets.flatMap(({ where, secret }, index) => {
    const first = secrets.findIndex((other) => other.secret.reveal() === secret.reveal());
    const other = secrets[first];
    return first === index || !other
      ? []
      : [{ where, what: `is the same as ${other.where}; an account can be configured only once` }];
  });
}
