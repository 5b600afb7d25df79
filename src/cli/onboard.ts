import { parleyCommand, startCommand } from '#channel-kit/own-commands.ts';
import type { ChannelEntry } from '#contracts/channel.ts';
import type { Config } from '../config/config.ts';
import { type Environment, homeFolder, readSurroundings, variableNamed } from '../config/environment.ts';
import { loadConfig } from '../config/load-config.ts';
import {
  assertWritable,
  type SettingsChange,
  writeSettings,
  writeVariables,
} from '../config/write-settings.ts';
import { checkKeys } from '../models/key-check.ts';
import { askGateway } from './ask-gateway.ts';
import type { ExitCode } from './exit-code.ts';
import { askGroups, askOwner } from './onboard/access-questions.ts';
import type { Answers } from './onboard/answers.ts';
import { askModel, type ModelDeps } from './onboard/model-questions.ts';
import { askNetwork, type ChosenNetwork } from './onboard/network-questions.ts';
import { openPrompter, PromptCancelled, type Prompter } from './onboard/prompter.ts';
import { wordsForEffect, wordsForWritten } from './onboard/report-settings.ts';

/**
 * Asks for a model, a network, the owner and the groups, and tries each credential. Writes only at the end, so
 * leaving early changes nothing; the exit code is then 1.
 */
export async function runOnboard(channels: readonly ChannelEntry[]): Promise<ExitCode> {
  const home = homeFolder();
  return onboard({
    channels,
    home,
    read: () => readSurroundings(home),
    check: checkKeys,
    open: openPrompter,
  });
}

export type OnboardDeps = {
  readonly channels: readonly ChannelEntry[];
  readonly home: string;
  /** Reads the environment and the `.env` files again. */
  read(): Environment;
  readonly check: typeof checkKeys;
  readonly open: typeof openPrompter;
};

/** Does the same as `runOnboard`, with explicit dependencies. */
export async function onboard({ channels, home, read, check, open }: OnboardDeps): Promise<ExitCode> {
  const environment = read();
  const usable = withUsableModel(environment, home);
  const config = loadConfig(usable, home);
  // Otherwise the answers would be typed in vain.
  await assertWritable(environment, home);
  const ask = await open('Let’s set up Parley. Each credential is tested as you enter it.');
  try {
    const setting = { channels, environment: usable, config, home, check };
    const { answers, network, isPaired } = await askAll(ask, setting);
    for (const line of await write(answers, environment, home)) ask.say(line);
    const after = loadConfig(read(), home);
    for (const line of wordsForEffect(after, settingsOf(answers))) ask.say(line);
    ask.end(await nextStep(after, { network, isPaired }));
    return 0;
  } catch (error) {
    if (!(error instanceof PromptCancelled)) throw error;
    ask.end('Nothing was changed.');
    return 1;
  }
}

/** Substitutes the demo model if the configured one lacks its key, which is exactly what onboarding is there to fix. */
function withUsableModel(environment: Environment, home: string): Environment {
  try {
    loadConfig(environment, home);
    return environment;
  } catch (error) {
    const usable = { ...environment, values: { ...environment.values, PARLEY_MODEL: 'demo' } };
    try {
      loadConfig(usable, home);
      return usable;
    } catch {
      throw error;
    }
  }
}

type Setting = ModelDeps & { readonly channels: readonly ChannelEntry[] };

async function askAll(ask: Prompter, setting: Setting) {
  const model = await askModel(ask, setting);
  const { network, ...ofNetwork } = await askNetwork({ ask, ...setting });
  if (network === undefined) return { answers: [model, ofNetwork], network, isPaired: false };
  const { isPaired, ...owner } = await askOwner(ask, network);
  return { answers: [model, ofNetwork, owner, await askGroups(ask)], network, isPaired };
}

const settingsOf = (answers: readonly Answers[]): SettingsChange =>
  Object.assign({}, ...answers.map((each) => each.settings));

/** Says what was written to each file, and which of its variables have no effect. */
async function write(
  answers: readonly Answers[],
  environment: Environment,
  home: string,
): Promise<readonly string[]> {
  const chosen: Readonly<Record<string, string>> = Object.assign(
    {},
    ...answers.map((each) => each.variables),
  );
  // A value kept from this shell is written too: the gateway may be started from another.
  const variables = Object.fromEntries(
    Object.entries(chosen).filter(
      ([name, value]) => !isInFile(name, environment) || variableNamed(name, environment) !== value,
    ),
  );
  const settings = settingsOf(answers);
  return [
    ...(Object.keys(settings).length > 0
      ? [wordsForWritten(await writeSettings(settings, environment, home))]
      : []),
    ...(Object.keys(variables).length > 0 ? await keep(variables, environment, home) : []),
  ];
}

async function keep(
  variables: Readonly<Record<string, string>>,
  environment: Environment,
  home: string,
): Promise<readonly string[]> {
  const names = Object.keys(variables);
  const path = await writeVariables(variables, environment, home);
  const hidden = names.filter((name) => {
    const set = variableNamed(name, environment);
    return set !== undefined && set !== variables[name] && !isInFile(name, environment);
  });
  return [
    `Secrets: ${path} (${names.join(', ')}; readable only by you)`,
    ...(hidden.length > 0
      ? [`This shell's environment also sets ${hidden.join(', ')} and takes precedence: unset it there.`]
      : []),
  ];
}

function isInFile(name: string, { files = [] }: Environment): boolean {
  return files.some(({ names }) => names.includes(name));
}

async function nextStep(
  config: Config,
  { network, isPaired }: { readonly network: ChosenNetwork | undefined; readonly isPaired: boolean },
): Promise<string> {
  const { kind } = await askGateway(config);
  const start = kind === 'running' ? 'Restart Parley to use it.' : `Start Parley: ${startCommand}`;
  if (network === undefined) return start;
  const { entry, setUp, isSignedIn } = network;
  // A network that asks for no secret links an account instead.
  const isLinked = isSignedIn || setUp.fields.some(({ isSecret }) => isSecret);
  const link = isLinked ? '' : ` Link the account: ${parleyCommand} channels login ${entry.id}.`;
  const first = isPaired
    ? ` Then write to your bot: it answers with a code, and ${parleyCommand} pair approve <code> makes you its owner.`
    : ' Then write to your bot.';
  return `${start}${link}${first}`;
}
