import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleFolder } from '../bin/bundle.mjs';
import { now, withDeadline } from './clock.ts';
import type { Platforms } from './platforms.ts';
import { childNamed } from './process-figures.ts';

/** A system under measurement, in its own process. */
export type Subject = {
  readonly name: 'floor' | 'Parley';
  readonly pid: number;
  /** Its private Redis, if it has one. */
  readonly redisPid: number | undefined;
  /** When the process was started and when it reported being ready, ms. */
  readonly startedAt: number;
  readonly readyAt: number;
  /** The folder with its settings and its data; the floor has none. */
  readonly home: string;
  /** Kills (`kill -9`) it and everything it has started; its files stay. */
  kill(): Promise<void>;
  /** Ends it and removes its files. */
  end(): Promise<void>;
};

export type SubjectOptions = {
  /** Kept across a kill, so that the next start finds it. */
  readonly home?: string;
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Starts the bundle directly with these Node.js flags, for profiles. */
  readonly nodeFlags?: readonly string[];
  /** Starts it through `npm start`, as a person does. */
  readonly isByNpm?: boolean;
};

const root = join(import.meta.dirname, '..');

export async function startFloor(platforms: Platforms, options: SubjectOptions = {}): Promise<Subject> {
  const [{ name }] = platforms.networks;
  const args = [...(options.nodeFlags ?? []), join(import.meta.dirname, 'floors', `${name}.ts`)];
  const started = await launch(process.execPath, args, { platforms, cwd: root, readyText: /^ready.*\n/m });
  return { name: 'floor', home: '', redisPid: undefined, ...started, end: started.kill };
}

/** Everybody may write, as often as the measurement needs, and sessions get no titles; all else is Parley's default. */
const openDoor = {
  access: { dmPolicy: 'open' },
  rateLimit: { perSenderPerMinute: 100_000 },
  // The measurement assumes one model call per message.
  titles: false,
};

export async function startParley(platforms: Platforms, options: SubjectOptions = {}): Promise<Subject> {
  const home = options.home ?? (await aHome());
  await mkdir(join(home, 'data'), { recursive: true });
  await writeFile(
    join(home, 'parley.config.json'),
    JSON.stringify({ port: 0, dataDir: 'data', ...openDoor, ...options.settings }),
  );
  const environment = {
    PARLEY_CONFIG: join(home, 'parley.config.json'),
  };
  const [program, args] = options.isByNpm
    ? ['npm', ['start', '--silent']]
    : options.nodeFlags
      ? [process.execPath, [...options.nodeFlags, join(bundleFolder(root), 'main.mjs'), 'start']]
      : [process.execPath, [join(root, 'bin/parley.mjs'), 'start']];
  const started = await launch(program, args, {
    platforms,
    cwd: root,
    readyText: /Parley is running\.\n\n[\s\S]*?\n\n/,
    environment,
    logFile: join(home, 'parley.log'),
  });
  const pid = options.isByNpm ? gatewayUnder(started.pid) : started.pid;
  return {
    name: 'Parley',
    home,
    ...started,
    pid,
    redisPid: childNamed(pid, 'redis-server'),
    end: async () => {
      await started.kill();
      await rm(home, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

export function aHome(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'parley-bench-'));
}

/** Finds the gateway below npm, which starts either a shell that starts Node.js, or Node.js itself. */
function gatewayUnder(pid: number): number {
  for (let at = pid; ; ) {
    if (childNamed(at, 'redis-server') !== undefined) return at;
    const below = childNamed(at, 'sh') ?? childNamed(at, 'MainThread') ?? childNamed(at, 'node');
    if (below === undefined) throw new Error(`no gateway runs under process ${pid}`);
    at = below;
  }
}

type Launch = {
  readonly platforms: Platforms;
  readonly cwd: string;
  /** The line it prints when ready, with its address if it has one. */
  readonly readyText: RegExp;
  readonly environment?: Readonly<Record<string, string>>;
  readonly logFile?: string;
};

type Launched = Pick<Subject, 'pid' | 'startedAt' | 'readyAt' | 'kill'>;

async function launch(program: string, args: readonly string[], options: Launch): Promise<Launched> {
  const startedAt = now();
  const child = spawn(program, args, {
    cwd: options.cwd,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      ...options.platforms.environment,
      ...options.environment,
    },
  });
  const output = collect(child, options.logFile);
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const kill = async () => {
    // A negative id means the entire group. Processes that are already gone can't be killed, and needn't be.
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, 'SIGKILL');
    await gone;
  };
  try {
    const ready = withDeadline<string>(20_000, `${program} ${args.join(' ')} was not ready`, (resolve) => {
      output.onMatch(options.readyText, resolve);
    });
    const told = await Promise.race([ready, gone.then(() => Promise.reject(new Error(`${program} ended`)))]);
    const readyAt = now();
    const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(told) ?? [];
    if (url !== undefined) options.platforms.meet(url);
    return { pid: child.pid ?? 0, startedAt, readyAt, kill };
  } catch (error) {
    await kill();
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${output.text()}`);
  }
}

function collect(child: ChildProcess, logFile: string | undefined) {
  let text = '';
  let look = () => {};
  const log = logFile === undefined ? undefined : createWriteStream(logFile, { flags: 'a' });
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8');
    stream?.on('data', (chunk: string) => {
      log?.write(chunk);
      text = (text + chunk).slice(-20_000);
      look();
    });
  }
  return {
    text: () => text,
    onMatch: (wanted: RegExp, resolve: (match: string) => void) => {
      look = () => {
        const [match] = wanted.exec(text) ?? [];
        if (match === undefined) return;
        look = () => {};
        resolve(match);
      };
      look();
    },
  };
}
