import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import { startTelegramServer, type TelegramServer } from '../platforms/telegram/server.ts';
import { pageToken } from './page-state.ts';
import { type ParleyOptions, type ParleyProcess, startParley } from './parley-process.ts';

/** Several processes between one local Telegram and one local model. Everything is closed when the test ends. */
export type Fleet = {
  readonly telegram: TelegramServer;
  readonly model: AnthropicServer;
  /** The folder that processes share unless they are given another name. */
  readonly dataDir: string;
  start(role: 'all' | 'gateway' | 'worker', options?: Member): Promise<ParleyProcess>;
};

export type Member = Pick<ParleyOptions, 'killAt' | 'readyMs'> & {
  /** The name of a separate data folder. */
  readonly folder?: string;
};

export type FleetSettings = {
  readonly config?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
};

/** `atEnd`: vitest's `onTestFinished`. */
export async function startFleet(
  { config = {}, env = {} }: FleetSettings,
  atEnd: (end: () => Promise<void>) => void,
): Promise<Fleet> {
  const home = await mkdtemp(join(tmpdir(), 'parley-fleet-'));
  const telegram = await startTelegramServer();
  const model = await startAnthropicServer();
  const configPath = join(home, 'parley.config.json');
  const channels = { telegram: { pollSeconds: 5 }, web: { enabled: false }, terminal: { enabled: false } };
  await writeFile(configPath, JSON.stringify({ access: { dmPolicy: 'open' }, channels, ...config }));
  const processes: Promise<ParleyProcess>[] = [];
  atEnd(async () => {
    // One that is still starting is awaited, or it would outlive the test.
    const begun = await Promise.allSettled(processes);
    await Promise.all(begun.map((one) => (one.status === 'fulfilled' ? one.value.kill() : undefined)));
    await telegram.close();
    await model.close();
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  });
  return {
    telegram,
    model,
    dataDir: join(home, 'data'),
    start: async (role, { folder = 'data', ...options } = {}) => {
      const dataDir = join(home, folder);
      await mkdir(dataDir, { recursive: true });
      const starting = startParley({
        ...options,
        ...(role !== 'all' && { role }),
        dataDir,
        env: {
          PARLEY_CONFIG: configPath,
          PARLEY_TOKEN: pageToken,
          ...telegram.environment,
          ...model.environment,
          ...env,
        },
      });
      processes.push(starting);
      return starting;
    },
  };
}
