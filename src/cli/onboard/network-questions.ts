import type { ChannelEntry, ChannelSetUp } from '#contracts/channel.ts';
import { hasCode } from '#contracts/errors.ts';
import { configuredAccounts } from '../../channel-host/configured-accounts.ts';
import type { Config } from '../../config/config.ts';
import type { Environment } from '../../config/environment.ts';
import { loadConfig } from '../../config/load-config.ts';
import { checkChannel } from '../doctor/channel-checks.ts';
import type { Answers } from './answers.ts';
import { keepAnyway } from './model-questions.ts';
import type { Prompter, TrialResult } from './prompter.ts';
import { placeOf } from './report-settings.ts';

/** The chosen network. */
export type Network = { readonly entry: ChannelEntry; readonly setUp: ChannelSetUp };

/** A network with the values typed for it; `isSignedIn`: it accepted them. */
export type ChosenNetwork = Network & { readonly isSignedIn: boolean };

/** The network's settings; without a network, only the page and the terminal are available. */
export type NetworkAnswers = Answers & { readonly network?: ChosenNetwork };

type QuestionDeps = {
  readonly ask: Prompter;
  readonly channels: readonly ChannelEntry[];
  readonly config: Config;
  readonly environment: Environment;
  readonly home: string;
};

/** Asks for one network and signs in to it, which changes nothing there. */
export async function askNetwork(asked: QuestionDeps): Promise<NetworkAnswers> {
  const { ask } = asked;
  const network = await chooseNetwork(asked);
  if (network === undefined) return { variables: {}, settings: {} };
  const { label, how } = network.setUp;
  ask.say(how);
  for (;;) {
    const variables = await askFields(asked, network.setUp);
    const tried = await ask.attempt(`Signing in to ${label}`, () => signIn(asked, network.entry, variables));
    const { isWell: isSignedIn, canKeep } = tried;
    if (isSignedIn || (canKeep && (await keepAnyway(ask, `Signing in to ${label}`))))
      return { network: { ...network, isSignedIn }, variables, settings: {} };
  }
}

async function chooseNetwork({ ask, channels }: QuestionDeps): Promise<Network | undefined> {
  const networks = await Promise.all(
    channels.map(async (entry) => ({ entry, setUp: await entry.setUp?.() })),
  );
  const known = networks.flatMap(({ entry, setUp }) => (setUp === undefined ? [] : [{ entry, setUp }]));
  const chosen = await ask.choose<string>('Which network will you use to write to it?', [
    ...known.map(({ entry, setUp: { label, hint } }) => ({ value: `${entry.id}`, label, hint })),
    { value: '', label: 'None yet', hint: 'the page and the terminal always work' },
  ]);
  return known.find(({ entry }) => entry.id === chosen);
}

type Variables = Readonly<Record<string, string>>;

/** Asks for each value; an empty answer keeps the one that is set, which is named with where it comes from. */
async function askFields(
  { ask, config, environment }: QuestionDeps,
  { fields }: ChannelSetUp,
): Promise<Variables> {
  const variables: Record<string, string> = {};
  const known: Readonly<Record<string, string | undefined>> = environment.values;
  for (const { variable, question, isSecret, byDefault, make } of fields) {
    if (question === undefined) {
      variables[variable] = known[variable] ?? make?.() ?? '';
      continue;
    }
    const kept = known[variable];
    const place = `${variable} ${placeOf(variable, config)}`;
    const value = isSecret
      ? await ask.secret(kept === undefined ? question : `${question} (empty: keep ${place})`, (typed) =>
          typed === '' && kept === undefined ? 'Paste it here.' : undefined,
        )
      : await ask.text(withDefault(question, kept === undefined ? byDefault : `${kept}, ${place}`));
    const meant = value || kept || byDefault;
    if (meant) variables[variable] = meant;
  }
  return variables;
}

const withDefault = (question: string, byDefault: string | undefined) =>
  byDefault === undefined ? question : `${question} (empty: ${byDefault})`;

/** Asks the network who the bot is, with settings that haven't been written yet. */
async function signIn(
  { channels, environment, home }: QuestionDeps,
  { id }: ChannelEntry,
  variables: Variables,
): Promise<TrialResult & { readonly canKeep: boolean }> {
  try {
    const config = loadConfig({ ...environment, values: { ...environment.values, ...variables } }, home);
    const account = configuredAccounts(channels, config).find(({ line }) => line === id);
    if (account === undefined || account.state.kind === 'off')
      return { isWell: false, canKeep: true, text: `${id} is switched off in the configuration` };
    const [who, ...further] = await checkChannel(config, account);
    const lines = [who, ...further.filter(({ result }) => result !== 'ok')].flatMap((check) =>
      check === undefined
        ? []
        : [check.detail, ...(check.fix && check.result !== 'ok' ? [`→ ${check.fix}`] : [])],
    );
    return { isWell: who?.result === 'ok', canKeep: true, text: lines.join('\n') };
  } catch (error) {
    if (!hasCode(error, 'config_invalid')) throw error;
    // Parley wouldn't start with these settings.
    return { isWell: false, canKeep: false, text: error instanceof Error ? error.message : String(error) };
  }
}
