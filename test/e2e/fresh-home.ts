/** An installation as a person has it after the clone: a home with its `.env`, run by the command itself. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Ran, runParley } from '../cli/run-parley.ts';
import { startAnthropicServer } from '../platforms/anthropic/server.ts';
import { startTelegramServer, type TelegramServer } from '../platforms/telegram/server.ts';
import { killTree } from './process-tree.ts';
import { until } from './until.ts';

export type FreshHome = {
  readonly path: string;
  readonly dataDir: string;
  readonly telegram: TelegramServer;
  /** Writes a file into the home. */
  write(name: string, text: string): Promise<void>;
  /** Starts the gateway from another folder; resolves when its table is printed. */
  start(): Promise<Running>;
  /** Runs a command from another folder. */
  parley(...args: readonly string[]): Promise<Ran>;
};

export type Running = {
  readonly pid: number;
  /** The page's address, from the table. */
  readonly url: string;
  /** All that it has printed. */
  output(): string;
  /** `kill -9` of it and its Redis. */
  kill(): Promise<void>;
};

/** `settings`: further lines of its `.env`. Everything ends with the test. */
export async function aFreshHome(
  settings: Readonly<Record<string, string>>,
  atEnd: (end: () => Promise<void>) => void,
): Promise<FreshHome> {
  const path = await mkdtemp(join(tmpdir(), 'parley-home-'));
  atEnd(() => rm(path, { recursive: true, force: true, maxRetries: 5 }));
  const [telegram, model] = await Promise.all([startTelegramServer(), startAnthropicServer()]);
  atEnd(async () => void (await Promise.all([telegram.close(), model.close()])));
  const write = (name: string, text: string) => writeFile(join(path, name), text, { mode: 0o600 });
  const variables = {
    PARLEY_PORT: '0',
    TELEGRAM_BOT_TOKEN: telegram.token,
    TELEGRAM_API_ROOT: telegram.apiRoot,
    ANTHROPIC_API_KEY: 'test-key',
    ANTHROPIC_BASE_URL: model.url,
    ...settings,
  };
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  await write('.env', `${lines.join('\n')}\n`);
  await mkdir(join(path, 'elsewhere'));
  return {
    ...{ path, dataDir: join(path, 'data'), telegram, write },
    parley: (...args) => runParley(args, { PARLEY_TEST_HOME: path }),
    start: async () => {
      const running = startIn(path);
      atEnd(() => running.kill());
      await until(() => /Parley is running/.test(running.output()) || running.hasEnded(), {
        what: 'the start table',
      });
      const [, url] = /page +(http:\S+)/.exec(running.output()) ?? [];
      if (url === undefined) throw new Error(`Parley did not start:\n${running.output()}`);
      return { ...running, url };
    },
  };
}

function startIn(home: string) {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../bin/parley.mjs'), 'start'], {
    cwd: join(home, 'elsewhere'),
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: home, PARLEY_TEST_HOME: home },
  });
  const ended = once(child, 'exit');
  const output = gather(child);
  return {
    pid: child.pid ?? 0,
    output,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    kill: async () => {
      killTree(child.pid ?? 0);
      await ended;
    },
  };
}

function gather(child: ChildProcess): () => string {
  let words = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8');
    stream?.on('data', (text: string) => {
      words += text;
    });
  }
  return () => words;
}
