/** An installation as a person has it after cloning: a home folder with its `.env`, run by the command itself. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Ran, runParley } from '../cli/run-parley.ts';
import { startAnthropicServer } from '../platforms/anthropic/server.ts';
import { startTelegramServer, type TelegramServer } from '../platforms/telegram/server.ts';
import { killTree } from './process-tree.ts';
import type { AtEnd } from './stage.ts';
import { until } from './until.ts';

export type Home = {
  readonly path: string;
  readonly dataDir: string;
  /** Writes a file into the home. */
  write(name: string, text: string): Promise<void>;
  /** Starts the gateway from another folder; resolves once its status table is printed. */
  start(): Promise<Running>;
  /** Runs a command from another folder. */
  parley(...args: readonly string[]): Promise<Ran>;
};

export type FreshHome = Home & { readonly telegram: TelegramServer };

export type Running = {
  readonly pid: number;
  /** The page's address, from the table. */
  readonly url: string;
  /** Everything printed so far. */
  output(): string;
  /** Kills the gateway and its Redis with `kill -9`. */
  kill(): Promise<void>;
};

/** `settings`: further lines of its `.env`. Everything is closed when the test ends. */
export async function aFreshHome(
  settings: Readonly<Record<string, string>>,
  atEnd: AtEnd,
): Promise<FreshHome> {
  const [telegram, model] = await Promise.all([startTelegramServer(), startAnthropicServer()]);
  atEnd(async () => void (await Promise.all([telegram.close(), model.close()])));
  const home = await anEmptyHome({}, atEnd);
  const variables = {
    PARLEY_PORT: '0',
    ...telegram.environment,
    ...model.environment,
    ...settings,
  };
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  await home.write('.env', `${lines.join('\n')}\n`);
  return { ...home, telegram };
}

/** A home as it is right after cloning, with nothing in it. `env`: shell variables for every command. */
export async function anEmptyHome(env: Readonly<Record<string, string>>, atEnd: AtEnd): Promise<Home> {
  const path = await mkdtemp(join(tmpdir(), 'parley-home-'));
  const elsewhere = await mkdtemp(join(tmpdir(), 'parley-elsewhere-'));
  for (const folder of [path, elsewhere])
    atEnd(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return {
    ...{ path, dataDir: join(path, 'data') },
    write: (name, text) => writeFile(join(path, name), text, { mode: 0o600 }),
    parley: (...args) => runParley(args, { ...env, PARLEY_TEST_HOME: path }),
    start: async () => {
      const running = startIn({ path, elsewhere, env });
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

type Shell = {
  readonly path: string;
  readonly elsewhere: string;
  readonly env: Readonly<Record<string, string>>;
};

function startIn({ path, elsewhere, env }: Shell) {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../bin/parley.mjs'), 'start'], {
    cwd: elsewhere,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: path, ...env, PARLEY_TEST_HOME: path },
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
