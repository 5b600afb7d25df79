/** The platforms, a home folder and the processes of one installation on them, which can be killed and started again. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import { startTelegramServer, type TelegramServer } from '../platforms/telegram/server.ts';
import { effectsFile } from './asking-tool.ts';
import { type DiscordSide, discordOf, openDiscordSide } from './discord-side.ts';
import { pageToken } from './page-state.ts';
import { loadable, type ParleyOptions, type ParleyProcess, startParley } from './parley-process.ts';
import { type Person, telegramPerson, terminalPerson, webPerson } from './person.ts';
import { openSignalSide, type SignalSide, signalOf } from './signal-side.ts';

export type ChannelName = 'telegram' | 'discord' | 'signal' | 'web' | 'terminal';
/** `polled-signal`: a signal-cli-rest-api in normal mode. */
export type StageNetwork = ChannelName | 'polled-signal';
export type AtEnd = (end: () => Promise<void>) => void;
export type Config = Readonly<Record<string, unknown>>;

export type StageSettings = {
  /** Merged over a parley.config.json with which anybody may write. */
  readonly config?: Config | undefined;
  /** Enabled besides Telegram. */
  readonly networks?: readonly StageNetwork[];
  /** Further variables of each process. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Default: a folder in the stage's home. A given folder isn't removed. */
  readonly dataDir?: string;
  /** Default: its own. A given server isn't closed. */
  readonly telegram?: TelegramServer;
  /** Default: its own. A given server isn't closed. */
  readonly model?: AnthropicServer;
};

export type StartOptions = Omit<Partial<ParleyOptions>, 'dataDir'> & {
  /** The name of a separate data folder in the stage's home, as if on a host of its own. */
  readonly folder?: string;
};

export type Stage = {
  readonly telegram: TelegramServer;
  /** Present if the stage was opened with it. */
  readonly discord: DiscordSide | undefined;
  /** Present if the stage was opened with it. */
  readonly signal: SignalSide | undefined;
  readonly model: AnthropicServer;
  /** The folder with the configuration, and whatever else processes share. */
  readonly home: string;
  readonly dataDir: string;
  /** Starts a process, which ends with the stage at the latest. */
  start(options?: StartOptions): Promise<ParleyProcess>;
  /** The process started last. */
  parley(): ParleyProcess;
  person(channel: ChannelName, id?: number): Person;
  /** The executions of the effect plugin's tools, oldest first. */
  effects(): readonly string[];
  /** Ends whatever is still running and removes the home; with `isKept` it stays for inspection. */
  close(options?: { readonly isKept: boolean }): Promise<void>;
};

/** Opens a stage without a process. `atEnd`: vitest's `onTestFinished`, which closes it; otherwise the caller does. */
export async function openStage(settings: StageSettings = {}, atEnd?: AtEnd): Promise<Stage> {
  const home = await mkdtemp(join(tmpdir(), 'parley-stage-'));
  const { networks = [], dataDir = join(home, 'data') } = settings;
  const [telegram, model, discord, signal] = await Promise.all([
    settings.telegram ?? startTelegramServer(),
    settings.model ?? startAnthropicServer(),
    networks.includes('discord') ? openDiscordSide(dataDir) : undefined,
    signalIn(networks),
  ]);
  const files = { effects: effectsFile(home), config: join(home, 'parley.config.json') };
  writeFileSync(files.config, JSON.stringify(configOf(settings)));
  mkdirSync(dataDir, { recursive: true });
  const started: Promise<ParleyProcess>[] = [];
  let running: ParleyProcess | undefined;
  const people: Person[] = [];

  const start = async ({ folder, env, ...options }: StartOptions = {}) => {
    const own = folder === undefined ? dataDir : join(home, folder);
    mkdirSync(own, { recursive: true });
    const starting = startParley({
      ...options,
      dataDir: own,
      env: {
        ...telegram.environment,
        ...model.environment,
        ...discord?.environment,
        ...signal?.environment,
        PARLEY_TOKEN: pageToken,
        PARLEY_CONFIG: files.config,
        TEST_PLUGIN: loadable('effect-plugin'),
        EFFECTS_FILE: files.effects,
        ...settings.env,
        ...env,
      },
    });
    started.push(starting);
    running = await starting;
    signal?.started(running.url);
    return running;
  };
  const close = async ({ isKept } = { isKept: false }) => {
    for (const person of people) person.close();
    // One that is still starting is awaited, or it would outlive the test.
    const begun = await Promise.allSettled(started);
    await Promise.all(begun.map((one) => (one.status === 'fulfilled' ? one.value.kill() : undefined)));
    const owned = [
      settings.telegram ? undefined : telegram,
      discord,
      signal,
      settings.model ? undefined : model,
    ];
    await Promise.all(owned.map((platform) => platform?.close()));
    if (!isKept) await rm(home, { recursive: true, force: true, maxRetries: 5 });
  };
  const stage: Stage = {
    ...{ telegram, discord, signal, model, home, dataDir, start, close },
    parley: () => {
      if (!running) throw new Error('test error: no process has been started');
      return running;
    },
    person: (channel, id = 501) => {
      const person = {
        telegram: () => telegramPerson(telegram, id),
        discord: () => discordOf(stage).person(id),
        signal: () => signalOf(stage).person(id),
        web: () => webPerson(() => running),
        terminal: () => terminalPerson(dataDir),
      }[channel]();
      people.push(person);
      return person;
    },
    effects: () => readLines(files.effects),
  };
  atEnd?.(close);
  return stage;
}

/** Opens a stage and starts a gateway on it. */
export async function startStage(settings: StageSettings, atEnd: AtEnd): Promise<Stage> {
  const stage = await openStage(settings, atEnd);
  await stage.start();
  return stage;
}

async function signalIn(networks: readonly StageNetwork[]): Promise<SignalSide | undefined> {
  if (networks.includes('polled-signal')) return openSignalSide({ mode: 'normal' });
  return networks.includes('signal') ? openSignalSide() : undefined;
}

function configOf({ config = {}, networks = [] }: StageSettings): Config {
  const { access, channels } = config as { access?: Config; channels?: Config };
  return {
    timeZone: 'Europe/Berlin',
    ...config,
    access: { dmPolicy: 'open', groupPolicy: 'open', ...access },
    channels: {
      telegram: { pollSeconds: 5 },
      web: { enabled: networks.includes('web') },
      terminal: { enabled: networks.includes('terminal') },
      ...channels,
    },
  };
}

function readLines(path: string): readonly string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').slice(0, -1);
  } catch {
    // Nothing has been executed yet.
    return [];
  }
}
