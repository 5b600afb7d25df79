/**
 * Threat 5, the race: an attacker swaps a folder for a link while files are being written. The attacker is a separate
 * process, so it truly runs in parallel with the writer. The control shows that the attack works.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openWorkspace } from '../../../plugins/files/workspace-files.ts';
import { workspaceDisks } from '../../../src/processes/disk-gate.ts';
import { isLong } from '../../support/long-run.ts';

/** The minimum number of tries; there are more until both sides have met as often as `meetings` says. */
const writes = isLong ? 100_000 : 1_000;
const meetings = writes / 50;
const never = new AbortController().signal;

/** Endlessly swaps `d` with a link to the outside, and `target.txt` with a link to an outside file. */
const attack = `
  const { renameSync, rmSync } = require('node:fs');
  const swap = (name) => {
    try {
      renameSync(name, name + '.real');
      renameSync(name + '.link', name);
      renameSync(name, name + '.link');
      renameSync(name + '.real', name);
    } catch {
      // The writer created a folder or file of that name in the gap, so remove it and put things back.
      try { rmSync(name, { recursive: true, force: true, maxRetries: 5 }); renameSync(name + '.real', name); } catch {}
    }
  };
  process.send('ready');
  for (;;) { swap('d'); swap('target.txt'); swap('d/e'); }
`;

let folder: string;
let workspace: string;
let outside: string;
let attacker: ChildProcess | undefined;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'parley-race-')));
  workspace = join(folder, 'workspace');
  outside = join(folder, 'outside');
  await mkdir(join(workspace, 'd/e'), { recursive: true });
  await mkdir(join(outside, 'e'), { recursive: true });
  await writeFile(join(outside, 'target.txt'), 'precious');
  await writeFile(join(workspace, 'target.txt'), 'mine');
  await symlink(outside, join(workspace, 'd.link'));
  await symlink(join(outside, 'target.txt'), join(workspace, 'target.txt.link'));
  await symlink(join(outside, 'e'), join(workspace, 'd/e.link'));
});

afterEach(async () => {
  if (attacker?.exitCode === null) {
    attacker.kill('SIGKILL');
    await once(attacker, 'exit');
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

async function startAttack(): Promise<void> {
  attacker = spawn(process.execPath, ['-e', attack], {
    cwd: workspace,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  await once(attacker, 'message');
}

async function escapes(): Promise<number> {
  const files = await readdir(outside, { recursive: true });
  const isIntact = (await readFile(join(outside, 'target.txt'), 'utf8')) === 'precious';
  // `e` and `target.txt` were there from the start.
  return files.length - 2 + (isIntact ? 0 : 1);
}

const targets = [(n: number) => `d/x${n}.txt`, () => 'target.txt', (n: number) => `d/e/y${n}.txt`];

function pathOfTry(n: number): string {
  return targets[n % targets.length]?.(n) ?? 'target.txt';
}

/** Runs `task` with 0, 1, 2, …, eight at a time, until `isDone` returns true for the number of tasks started. */
async function inParallel(
  isDone: (count: number) => boolean,
  task: (n: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (!isDone(next)) await task(next++);
  };
  await Promise.all(Array.from({ length: 8 }, lane));
}

describe.runIf(process.platform === 'linux')('writing while folders are swapped for links (threat 5)', () => {
  it(`writes nothing outside the workspace in ${writes} attempts and more`, {
    timeout: 600_000,
  }, async () => {
    await startAttack();
    await using files = await openWorkspace(workspace, workspaceDisks);
    const tally = { written: 0, refused: 0 };
    const problems = new Set<string>();
    // Both sides have really met once many writes came through and many ran into the attacker's links.
    const hasMet = () => Math.min(tally.written, tally.refused) > meetings;
    await inParallel(
      (count) => count >= writes && hasMet(),
      async (n) => {
        try {
          await files.write(pathOfTry(n), Buffer.from(`try ${n}`), { signal: never });
          tally.written++;
        } catch (error) {
          tally.refused++;
          problems.add(error instanceof Error ? error.message : String(error));
        }
      },
    );
    expect(await escapes()).toBe(0);
    expect([...problems].some((problem) => problem.includes('symbolic link'))).toBe(true);
  });

  it('reads nothing outside the workspace', { timeout: 600_000 }, async () => {
    await writeFile(join(outside, 'secret.txt'), 'secret');
    await writeFile(join(workspace, 'd/secret.txt'), 'public');
    await startAttack();
    await using files = await openWorkspace(workspace, workspaceDisks);
    const seen = new Set<string>();
    let refused = 0;
    const hasSeenBoth = () => seen.size > 1 && refused > 0;
    await inParallel(
      (count) => count >= writes / 2 && hasSeenBoth(),
      async (n) => {
        const path = n % 2 === 0 ? 'd/secret.txt' : 'target.txt';
        try {
          seen.add((await files.read(path, { maxBytes: 100, signal: never })).bytes.toString());
        } catch {
          refused++;
        }
      },
    );
    expect([...seen].sort()).toEqual(['mine', 'public']);
  });

  it('would notice an escape: checking the real path before writing does escape', {
    timeout: 600_000,
  }, async () => {
    await startAttack();
    const naive = async (path: string, text: string) => {
      const parent = await realpath(join(workspace, path, '..'));
      if (!parent.startsWith(workspace)) throw new Error('outside');
      await writeFile(join(workspace, path), text);
    };
    let found = 0;
    await inParallel(
      () => found > 0,
      async (n) => {
        // Refusals and collisions with the attacker are expected here, so only escapes count.
        await naive(pathOfTry(n), `try ${n}`).catch(() => undefined);
        if (n % 100 === 0) found = await escapes();
      },
    );
    expect(found).toBeGreaterThan(0);
  });
});
