import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import { startTelegramServer, type TelegramServer } from '../platforms/telegram/server.ts';
import type { StandingMessage, TgUser } from '../platforms/telegram/types.ts';
import { patienceMs } from '../support/patience.ts';
import { type ChannelShown, channelShown, pageToken } from './page-state.ts';
import { type ParleyProcess, startParley } from './parley-process.ts';

export const ada: TgUser = { id: 501, is_bot: false, first_name: 'Ada', username: 'ada_l' };
export const bob: TgUser = { id: 502, is_bot: false, first_name: 'Bob' };
export const eve: TgUser = { id: 666, is_bot: false, first_name: 'Eve' };

/** A real gateway between a local Telegram and a local model. Everything is closed when the test ends. */
export type TelegramGateway = {
  readonly telegram: TelegramServer;
  readonly model: AnthropicServer;
  readonly dataDir: string;
  /** The running process; another one after `start`. */
  parley(): ParleyProcess;
  /** Starts the gateway again on the same data folder after a stop or a kill. `env` overrides its own variables. */
  start(env?: GatewaySettings['env']): Promise<ParleyProcess>;
};

export type GatewaySettings = {
  /** Merged over parley.config.json; Ada and Bob may write unless it says otherwise. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Default: a fresh folder. A given folder isn't removed. */
  readonly dataDir?: string;
  readonly telegram?: TelegramServer;
  readonly model?: AnthropicServer;
};

type Cleanup = (end: () => Promise<void>) => void;

/** `atEnd`: vitest's `onTestFinished`; what was opened last is closed first. */
export async function startTelegramGateway(
  settings: GatewaySettings,
  atEnd: Cleanup,
): Promise<TelegramGateway> {
  const home = await mkdtemp(join(tmpdir(), 'parley-telegram-'));
  const dataDir = settings.dataDir ?? join(home, 'data');
  const telegram = settings.telegram ?? (await startTelegramServer());
  const model = settings.model ?? (await startAnthropicServer());
  await mkdir(dataDir, { recursive: true });
  const configPath = join(home, 'parley.config.json');
  await writeFile(configPath, JSON.stringify(configOf(settings)));
  const begin = (env: GatewaySettings['env']) =>
    startParley({ dataDir, env: { ...environmentOf({ telegram, model, configPath }, settings), ...env } });
  let parley: ParleyProcess | undefined;
  atEnd(async () => {
    await parley?.kill();
    if (!settings.telegram) await telegram.close();
    if (!settings.model) await model.close();
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  });
  const start = async (env: GatewaySettings['env'] = {}) => {
    parley = await begin(env);
    return parley;
  };
  await start();
  return {
    telegram,
    model,
    dataDir,
    start,
    parley: () => {
      if (!parley) throw new Error('the gateway has not been started');
      return parley;
    },
  };
}

/** Returns what the page shows for the Telegram channel. */
export function telegramState(url: string): Promise<ChannelShown> {
  return channelShown(url, 'telegram');
}

function configOf({ config = {} }: GatewaySettings): Record<string, unknown> {
  const access = { dmPolicy: 'allowlist', allowFrom: ['telegram:501', 'telegram:502'], groupPolicy: 'open' };
  const { channels = {} } = config as { channels?: Record<string, unknown> };
  return {
    timeZone: 'Europe/Berlin',
    access,
    ...config,
    channels: {
      telegram: { pollSeconds: 5 },
      web: { enabled: false },
      terminal: { enabled: false },
      ...channels,
    },
  };
}

type Surroundings = {
  readonly telegram: TelegramServer;
  readonly model: AnthropicServer;
  readonly configPath: string;
};

function environmentOf({ telegram, model, configPath }: Surroundings, { env = {} }: GatewaySettings) {
  return {
    PARLEY_CONFIG: configPath,
    PARLEY_TOKEN: pageToken,
    ...telegram.environment,
    ...model.environment,
    ...env,
  };
}

/** Returns what the bot said in a chat, oldest first. */
export function said(telegram: TelegramServer, chat: number): readonly string[] {
  return telegram.botMessages(chat).map((message) => message.text);
}

/** Waits until the beginning of an answer is shown in a private chat. */
export function untilWriting(telegram: TelegramServer, chat: number): Promise<unknown> {
  return telegram.waitFor(() => telegram.drafts.some(({ chatId }) => chatId === chat));
}

/** Waits until the bot has said exactly this text, and returns its message. */
export function untilSaid(
  telegram: TelegramServer,
  what: { readonly chat: number; readonly text: string | RegExp },
  deadlineMs = patienceMs,
): Promise<StandingMessage> {
  const fits = ({ text }: StandingMessage) =>
    typeof what.text === 'string' ? text === what.text : what.text.test(text);
  return telegram.waitFor(() => telegram.botMessages(what.chat).find(fits), deadlineMs);
}
