/** Runs one program with bounded time and output, and ends everything that it started. */
import { type ChildProcess, spawn } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import { z } from 'zod';
import { OutputBuffer } from './output-buffer.ts';

/** A program to start. */
export type Launch = {
  readonly file: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Only for a program that no sandbox gives a folder. */
  readonly cwd?: string;
  /** The descriptor on which bubblewrap reports; absent without a sandbox. */
  readonly statusFd?: number;
  /** Texts that the program reads from its descriptors; they follow `statusFd`. */
  readonly writes?: ReadonlyMap<number, string>;
  /** Open descriptors of this process that it inherits; they follow `writes`. */
  readonly passes?: readonly number[];
};

export type CommandEnd =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'timed-out' }
  | { readonly kind: 'stopped' }
  /** Nothing of the command has run. `isMissing`: there is no such program. */
  | { readonly kind: 'not-started'; readonly problem: string; readonly isMissing: boolean };

export interface RunningCommand {
  readonly output: OutputBuffer;
  /** Resolves when the command and everything that it started have ended. Never rejects. */
  readonly ended: Promise<CommandEnd>;
  /** Ends it: SIGTERM, and SIGKILL a second later. */
  stop(): void;
}

const graceMs = 1000;
/** How long pipes may stay open after the program's end: without a sandbox somebody may hold them for ever. */
const drainMs = 500;
/** Output is read at no more than about this many bytes in `breakMs`, so that a flood leaves the process idle time. */
const burstBytes = 1024 * 1024;
const breakMs = 10;

/** Starts the program; a program that can't be started is an end, too. */
export function startCommand(launch: Launch, timeoutMs: number): RunningCommand {
  const output = new OutputBuffer();
  const child = spawn(launch.file, launch.args, {
    env: launch.environment,
    ...(launch.cwd !== undefined && { cwd: launch.cwd }),
    // Its own process group, to signal all of it. In a sandbox the namespace is what ends.
    detached: launch.statusFd === undefined,
    stdio: stdioOf(launch),
  });
  for (const stream of [child.stdout, child.stderr]) if (stream) readPaced(stream, output);
  const tree = launch.statusFd === undefined ? groupOf(child) : namespaceOf(child, launch.statusFd);
  for (const [fd, text] of launch.writes ?? []) writeTo(child, fd, text);
  let cut: 'timed-out' | 'stopped' | undefined;
  let isOver = false;
  let killing: NodeJS.Timeout | undefined;
  const end = (why: 'timed-out' | 'stopped') => {
    if (cut !== undefined || isOver) return;
    cut = why;
    tree.signal('SIGTERM');
    killing = setTimeout(() => tree.signal('SIGKILL'), graceMs);
  };
  const timer = setTimeout(end, timeoutMs, 'timed-out');
  const ended = endOf(child).then((found): CommandEnd => {
    isOver = true;
    clearTimeout(timer);
    clearTimeout(killing);
    // Without a sandbox the program may have left others behind.
    tree.signal('SIGKILL');
    if (found.kind === 'failed') return { ...found, kind: 'not-started' };
    if (cut !== undefined) return { kind: cut };
    const { code, isKilled } = found;
    if (!isKilled && !tree.hasRun()) {
      return { kind: 'not-started', problem: output.text().trim(), isMissing: false };
    }
    return { kind: 'exited', code };
  });
  return { output, ended, stop: () => end('stopped') };
}

function stdioOf({ statusFd, writes, passes = [] }: Launch): ('ignore' | 'pipe' | number)[] {
  const own = [...(statusFd === undefined ? [] : [statusFd]), ...(writes?.keys() ?? [])];
  return ['ignore', 'pipe', 'pipe', ...own.map(() => 'pipe' as const), ...passes];
}

function writeTo(child: ChildProcess, fd: number, text: string): void {
  const stream = child.stdio[fd];
  if (!(stream instanceof Writable)) return;
  // A program that ends early doesn't read it, which its end says.
  stream.on('error', () => undefined);
  stream.end(text);
}

function readPaced(stream: Readable, output: OutputBuffer): void {
  let taken = 0;
  stream.on('error', () => undefined);
  stream.on('data', (chunk: Buffer) => {
    output.add(chunk);
    taken += chunk.length;
    if (taken < burstBytes) return;
    taken = 0;
    stream.pause();
    setTimeout(() => stream.resume(), breakMs);
  });
}

type ProgramEnd =
  | { readonly kind: 'ended'; readonly code: number; readonly isKilled: boolean }
  | { readonly kind: 'failed'; readonly problem: string; readonly isMissing: boolean };

function endOf(child: ChildProcess): Promise<ProgramEnd> {
  return new Promise((resolve) => {
    let end: ProgramEnd = { kind: 'failed', problem: 'it ended without a word', isMissing: false };
    const done = () => resolve(end);
    child.on('error', (error: NodeJS.ErrnoException) =>
      resolve({ kind: 'failed', problem: error.message, isMissing: error.code === 'ENOENT' }),
    );
    child.on('close', done);
    child.on('exit', (status, signal) => {
      end = { kind: 'ended', code: status ?? (signal === 'SIGTERM' ? 143 : 137), isKilled: status === null };
      setTimeout(() => {
        for (const stream of child.stdio) stream?.destroy();
        done();
      }, drainMs).unref();
    });
  });
}

/** The processes of a command. */
type Tree = { signal(name: 'SIGTERM' | 'SIGKILL'): void; hasRun(): boolean };

function groupOf(child: ChildProcess): Tree {
  return { signal: (name) => child.pid !== undefined && sendTo(-child.pid, name), hasRun: () => true };
}

/**
 * A sandbox, by what bubblewrap reports: first the process that is number 1 inside, and with it the kernel ends all
 * others; at the end the command's exit code, which is missing if the sandbox couldn't be made.
 */
function namespaceOf(child: ChildProcess, statusFd: number): Tree {
  let first: number | undefined;
  let hasRun = false;
  let isEnding = false;
  let isOver = false;
  child.on('exit', () => {
    isOver = true;
  });
  const signal = (name: 'SIGTERM' | 'SIGKILL') => {
    isEnding = true;
    // After bubblewrap's end, which takes the others with it, the number may be somebody else's.
    if (isOver || first === undefined) return;
    // The first process ignores SIGTERM; its group is the command and whatever has made no group of its own.
    sendTo(name === 'SIGTERM' ? -first : first, name);
  };
  readLines(child.stdio[statusFd], (line) => {
    const status = parseStatus(line);
    hasRun ||= status['exit-code'] !== undefined;
    if (first !== undefined) return;
    first = status['child-pid'];
    // Ended while bubblewrap was still starting: only now is it known what to end.
    if (isEnding) signal('SIGKILL');
  });
  return { signal, hasRun: () => hasRun };
}

function readLines(stream: unknown, onLine: (line: string) => void): void {
  if (!(stream instanceof Readable)) return;
  let rest = '';
  stream.on('error', () => undefined);
  stream.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  });
}

const statusSchema = z.object({ 'child-pid': z.int().min(2).optional(), 'exit-code': z.int().optional() });

function parseStatus(line: string): z.output<typeof statusSchema> {
  try {
    return statusSchema.parse(JSON.parse(line));
  } catch {
    return {};
  }
}

function sendTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}
