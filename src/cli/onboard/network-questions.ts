import { randomBytes } from 'node:crypto';
import type { ChannelEntry } from '#contracts/channel.ts';
import { configuredAccounts } from '../../channel-host/configured-accounts.ts';
import type { Environment, EnvironmentName } from '../../config/environment.ts';
import { loadConfig } from '../../config/load-config.ts';
import { findSecretProblem } from '../../config/secret.ts';
import { checkChannel } from '../doctor/channel-checks.ts';
import type { Answers } from './answers.ts';
import { keepAnyway } from './model-questions.ts';
import type { Prompter, Tried } from './prompter.ts';

export type NetworkName = 'telegram' | 'discord' | 'signal';

/** The chosen network with what it needs; none: the page and the terminal only. */
export type NetworkAnswers = Answers & { readonly network?: NetworkName };

type Asked = {
  readonly ask: Prompter;
  readonly channels: readonly ChannelEntry[];
  readonly environment: Environment;
  readonly home: string;
};

const none = { variables: {}, settings: {} } as const;

/** Asks for one network and signs in there, which changes nothing on it. */
export async function askNetwork(asked: Asked): Promise<NetworkAnswers> {
  const network = await asked.ask.choose<NetworkName | 'none'>('Which network do you write to it on?', [
    { value: 'telegram', label: 'Telegram', hint: 'a bot token; two minutes' },
    { value: 'discord', label: 'Discord', hint: 'a bot token and an invitation' },
    { value: 'signal', label: 'Signal', hint: 'needs signal-cli-rest-api' },
    { value: 'none', label: 'None yet', hint: 'the page and the terminal work anyway' },
  ]);
  if (network === 'none') return none;
  const { ask } = asked;
  for (;;) {
    const variables = await (network === 'signal' ? askSignal(asked) : askToken(ask, network));
    const tried = await ask.attempt(`Signing in at ${network}`, () => signIn(asked, network, variables));
    if (tried.isWell || (await keepAnyway(ask, `Signing in at ${network}`)))
      return { network, variables, settings: {} };
  }
}

const tokens = {
  telegram: {
    name: 'TELEGRAM_BOT_TOKEN',
    kind: 'telegram-token',
    how: 'In Telegram, write /newbot to @BotFather. It gives you a token.',
  },
  discord: {
    name: 'DISCORD_BOT_TOKEN',
    kind: 'discord-token',
    how: 'At https://discord.com/developers create an application. On its Bot page switch Message Content Intent on and copy the token.',
  },
} as const;

async function askToken(ask: Prompter, network: 'telegram' | 'discord'): Promise<Variables> {
  const { name, kind, how } = tokens[network];
  ask.say(how);
  const token = await ask.secret('Token of the bot', (value) => {
    const problem = findSecretProblem(value, kind);
    return problem === undefined ? undefined : `This ${problem}.`;
  });
  return { [name]: token };
}

type Variables = Readonly<Partial<Record<EnvironmentName, string>>>;

async function askSignal({ ask, environment }: Asked): Promise<Variables> {
  ask.say(
    'Signal is reached through signal-cli-rest-api, a server of your own (docs: channels/signal/README.md).',
  );
  const byDefault = 'http://127.0.0.1:8080';
  const address = await ask.text(`Its address (empty: ${byDefault})`, {
    example: byDefault,
    problemOf: (value) => (value === '' || URL.canParse(value) ? undefined : 'Write http://…'),
  });
  const number = await ask.text('The number of the account, +49… (empty: the only one it has)', {
    problemOf: (value) => (/^(?:\+\d{6,15})?$/.test(value) ? undefined : 'Write + and digits.'),
  });
  return {
    SIGNAL_API_URL: address || byDefault,
    ...(number !== '' && { SIGNAL_NUMBER: number }),
    SIGNAL_WEBHOOK_SECRET: environment.values.SIGNAL_WEBHOOK_SECRET ?? randomBytes(24).toString('hex'),
  };
}

/** Asks the network who this is, with settings that are nowhere written yet. */
async function signIn(
  { channels, environment, home }: Asked,
  network: NetworkName,
  variables: Variables,
): Promise<Tried> {
  const config = loadConfig({ ...environment, values: { ...environment.values, ...variables } }, home);
  const account = configuredAccounts(channels, config).find(({ line }) => line === network);
  if (account === undefined || account.state.kind === 'off')
    return { isWell: false, text: `${network} is switched off in the configuration` };
  const [who, ...further] = await checkChannel(config, account);
  const lines = [who, ...further.filter(({ result }) => result !== 'ok')].flatMap((check) =>
    check === undefined
      ? []
      : [check.detail, ...(check.fix && check.result !== 'ok' ? [`→ ${check.fix}`] : [])],
  );
  return { isWell: who?.result === 'ok', text: lines.join('\n') };
}
