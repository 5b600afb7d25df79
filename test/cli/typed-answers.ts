import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { patienceMs } from '../support/patience.ts';

export type Conversation = {
  /** Waits until the text appears on the screen after everything answered so far, then types. */
  answer(question: string | RegExp, keys: string): Promise<void>;
  /** Returns everything shown so far, without colors. */
  shown(): string;
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>;
};

/** Keys as a terminal sends them. */
export const keys = { enter: '\r', down: '\u001b[B', leave: '\u0003' } as const;

export type TypeOptions = {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The root of the clone whose command is run; by default this one. */
  readonly root?: string;
  /** Registers a cleanup that ends the command if it still runs, such as vitest's `onTestFinished`. */
  atEnd(end: () => void): void;
};

/** Runs `parley …` with simulated keyboard input. */
export function typeTo(args: readonly string[], options: TypeOptions): Conversation {
  const program = join(options.root ?? join(import.meta.dirname, '../..'), 'bin/parley.mjs');
  const child = spawn(process.execPath, [program, ...args], {
    cwd: options.cwd,
    env: { PATH: process.env.PATH, HOME: options.cwd, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  options.atEnd(() => void child.kill('SIGKILL'));
  let output = '';
  let seen = 0;
  let wake = () => {};
  const hear = (chunk: Buffer) => {
    output += chunk.toString();
    wake();
  };
  child.stdout.on('data', hear);
  child.stderr.on('data', hear);
  const shown = () => stripVTControlCharacters(output);
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const untilShown = async (question: string | RegExp): Promise<number> => {
    const deadline = AbortSignal.timeout(patienceMs);
    for (;;) {
      const rest = shown().slice(seen);
      const at = typeof question === 'string' ? rest.indexOf(question) : rest.search(question);
      if (at !== -1) return seen + at + 1;
      if (deadline.aborted || child.exitCode !== null)
        throw new Error(`“${question}” was not asked. The screen:\n${shown()}`);
      await new Promise<void>((resolve) => {
        wake = resolve;
        setTimeout(resolve, 50);
      });
    }
  };
  return {
    shown,
    ended,
    answer: async (question, typed) => {
      seen = await untilShown(question);
      child.stdin.write(typed);
    },
  };
}
