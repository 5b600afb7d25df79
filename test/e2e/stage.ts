/** The platforms, a data folder and the gateway on them, which can be killed and started again. */
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import { startTelegramServer, type TelegramServer } from '../platforms/telegram/server.ts';
import { type DiscordSide, openDiscordSide } from './discord-side.ts';
import {
  aDataFolder,
  loadable,
  type ParleyOptions,
  type ParleyProcess,
  startParley,
} from './parley-process.ts';
import { type Person, telegramPerson, terminalPerson, webPerson } from './person.ts';
import { openSignalSide, type SignalSide } from './signal-side.ts';

export type ChannelName = 'telegram' | 'discord' | 'signal' | 'web' | 'terminal';
/** `polled-signal`: a signal-cli-rest-api in normal mode. */
export type StageNetwork = ChannelName | 'polled-signal';

export type Stage = {
  readonly telegram: TelegramServer;
  /** Present if the stage was opened with it. */
  readonly discord: DiscordSide | undefined;
  /** Present if the stage was opened with it. */
  readonly signal: SignalSide | undefined;
  readonly model: AnthropicServer;
  readonly dataDir: string;
  /** Starts the gateway. */
  start(options?: Pick<ParleyOptions, 'killAt' | 'killAfterMs' | 'program'>): Promise<ParleyProcess>;
  person(channel: ChannelName, id?: number): Person;
  /** The executions of the effect plugin's tools, oldest first. */
  effects(): readonly string[];
  /** Ends whatever is still running and removes the folder; with `isKept` the folder stays for inspection. */
  close(options?: { readonly isKept: boolean }): Promise<void>;
};

/**
 * `config`: the contents of parley.config.json. `networks`: those connected besides Telegram. `env`: further
 * variables of the gateway.
 */
export async function openStage(
  config: Readonly<Record<string, unknown>> = {},
  networks: readonly StageNetwork[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Stage> {
  const [telegram, model, folder, signal] = await Promise.all([
    startTelegramServer(),
    startAnthropicServer(),
    aDataFolder(),
    signalIn(networks),
  ]);
  const discord = networks.includes('discord') ? await openDiscordSide(folder.path) : undefined;
  const people: Person[] = [];
  const effectsFile = join(folder.path, 'effects');
  const configFile = join(folder.path, 'parley.config.json');
  await writeFile(configFile, JSON.stringify(config));
  let running: ParleyProcess | undefined;
  return {
    telegram,
    discord,
    signal,
    model,
    dataDir: folder.path,
    start: async (options = {}) => {
      running = await startParley({
        dataDir: folder.path,
        env: {
          ...environmentFor({ telegram, model }),
          ...discord?.environment,
          ...signal?.environment,
          ...env,
          EFFECTS_FILE: effectsFile,
          PARLEY_CONFIG: configFile,
        },
        ...options,
      });
      signal?.started(running.url);
      return running;
    },
    person: (channel, id = 501) => {
      const person = {
        telegram: () => telegramPerson(telegram, id),
        discord: () => present(discord).person(id),
        signal: () => present(signal).person(id),
        web: () => webPerson(() => running),
        terminal: () => terminalPerson(folder.path),
      }[channel]();
      people.push(person);
      return person;
    },
    effects: () => readLines(effectsFile),
    close: async ({ isKept } = { isKept: false }) => {
      for (const person of people) person.close();
      await running?.kill();
      await Promise.all([
        telegram.close(),
        discord?.close(),
        signal?.close(),
        model.close(),
        isKept ? undefined : folder.remove(),
      ]);
    },
  };
}

async function signalIn(networks: readonly StageNetwork[]): Promise<SignalSide | undefined> {
  if (networks.includes('polled-signal')) return openSignalSide({ mode: 'normal' });
  return networks.includes('signal') ? openSignalSide() : undefined;
}

function present<T>(side: T | undefined): T {
  if (side === undefined) throw new Error('test error: the stage was opened without that network');
  return side;
}

function environmentFor({ telegram, model }: Pick<Stage, 'telegram' | 'model'>) {
  return {
    ...telegram.environment,
    ...model.environment,
    PARLEY_DM_POLICY: 'open',
    PARLEY_GROUP_POLICY: 'open',
    TEST_PLUGIN: loadable('effect-plugin'),
  };
}

function readLines(path: string): readonly string[] {
  try {
    return readFileSync(path, 'utf8').trim().split('\n');
  } catch {
    // Nothing has been executed yet.
    return [];
  }
}
