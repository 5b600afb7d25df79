import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { collectorFlags, roomyFlags } from '../support/node-flags.ts';
import { patienceMs } from '../support/patience.ts';
import { killTree } from './process-tree.ts';

/** A real gateway process. Its data folder outlives it, so that the next start finds what it left. */
export type ParleyProcess = {
  readonly url: string;
  readonly signInLink: string;
  readonly pid: number;
  /** Arranges its death at `<kill point>:<nth time from now>`. */
  killAt(order: string): Promise<void>;
  /** Kills the process group with `kill -9`: gateway and private Redis at the same time. */
  kill(): Promise<void>;
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<void>;
  /** Resolves when it has ended, for whatever reason. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
};

export type ParleyOptions = {
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string>>;
  /** `<kill point>:<nth time>`. */
  readonly killAt?: string;
  /** `<kill point>:<nth time>`: there the process stops itself, as SIGSTOP does. */
  readonly stopAt?: string;
  /** Time after its start at which it is killed, ready or not, ms. */
  readonly killAfterMs?: number;
  readonly readyMs?: number;
  /** Module of the gateway to start; default: this version's. */
  readonly program?: string;
  /** Default: `test.log` in the data folder. */
  readonly logFile?: string;
  /** Default: `all`. */
  readonly role?: 'all' | 'gateway' | 'worker';
  /** A network namespace to run in; default: this one. */
  readonly namespace?: string;
};

/** The bundle, if vitest.config.ts found one. */
const { PARLEY_TEST_BUNDLE } = process.env;
/** The path of a module of this folder for a gateway; the bundle's copy, if there is one, halves its start time. */
export const loadable = (name: string) =>
  PARLEY_TEST_BUNDLE === undefined
    ? join(import.meta.dirname, `${name}.ts`)
    : join(PARLEY_TEST_BUNDLE, `${name}.mjs`);
const compileCache = join(import.meta.dirname, '../../node_modules/.cache/parley');

/** Starts the gateway; resolves when it is ready, or when it was killed at its point before that. */
export async function startParley(options: ParleyOptions): Promise<ParleyProcess> {
  const { namespace } = options;
  // Flags override NODE_OPTIONS, in which tests that measure memory set the room as `parley` does.
  const flags = options.env.NODE_OPTIONS === undefined ? [...collectorFlags, ...roomyFlags] : collectorFlags;
  const program = [process.execPath, ...flags, options.program ?? loadable('parley-under-test')];
  // `ip` execs the program, so the process id is the gateway's.
  const [first = '', ...rest] =
    namespace === undefined ? program : ['ip', 'netns', 'exec', namespace, ...program];
  const child = spawn(first, rest, {
    detached: true,
    // A .env in the checkout belongs to the developer, not to the test.
    cwd: options.dataDir,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      // Saves parsing and type stripping on every start but the first, as main.ts does.
      NODE_COMPILE_CACHE: compileCache,
      PARLEY_DATA_DIR: options.dataDir,
      PARLEY_PORT: '0',
      PARLEY_LOG_LEVEL: 'debug',
      ...options.env,
      ...(options.role !== undefined && { TEST_ROLE: options.role }),
      ...(options.killAt !== undefined && { KILL_AT: options.killAt }),
      ...(options.stopAt !== undefined && { STOP_AT: options.stopAt }),
    },
  });
  if (options.killAfterMs !== undefined) setTimeout(() => killTree(child.pid ?? 0), options.killAfterMs);
  const log = createWriteStream(logFileOf(options), { flags: 'a' });
  child.stdout?.pipe(log, { end: false });
  child.stderr?.pipe(log, { end: false });
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  const ready = await readiness(child, { ended, options });
  const pid = child.pid ?? 0;
  return {
    ...ready,
    pid,
    ended,
    killAt: async (order) => {
      const armed = once(child, 'message');
      child.send({ killAt: order });
      await armed;
    },
    kill: async () => {
      killTree(pid);
      await ended;
    },
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

function logFileOf({ logFile, dataDir }: ParleyOptions): string {
  return logFile ?? join(dataDir, 'test.log');
}

type Ready = { readonly url: string; readonly signInLink: string };

function readiness(
  child: ChildProcess,
  { ended, options }: { ended: ParleyProcess['ended']; options: ParleyOptions },
): Promise<Ready> {
  const closed = new Promise((resolve) => child.once('close', resolve));
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk) => {
      said = (said + chunk).slice(-2000);
    });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`Parley was not ready in time; see ${logFileOf(options)}`));
    }, options.readyMs ?? patienceMs);
    child.once('message', (message) => {
      clearTimeout(timer);
      const { url, link } = message as { url: string; link: string };
      resolve({ url, signInLink: link });
    });
    void ended.then(async ({ code, signal }) => {
      clearTimeout(timer);
      const isKilled = options.killAt !== undefined || options.killAfterMs !== undefined;
      if (signal === 'SIGKILL' && isKilled) return resolve({ url: '', signInLink: '' });
      // Its last output may still be arriving.
      await closed;
      reject(new Error(`Parley ended with ${code ?? signal} before it was ready:\n${said}`));
    });
  });
}
