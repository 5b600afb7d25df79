import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, utimesSync, writeFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { enterProcesses, liveProcesses, type ProcessFiles } from '../../src/processes/process-files.ts';

let folder: string;
let own: ProcessFiles;
const children: ChildProcess[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-processes-'));
  own = enterProcesses(folder);
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  own.release();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

const script = `
  const { enterProcesses } = await import(process.argv[1] + '/src/processes/process-files.ts');
  const files = enterProcesses(process.argv[2]);
  console.log(files.name);
  setInterval(() => files.isAlive(files.name), 1000);
`;

/** Starts another process, which enters the folder. */
async function aSibling(): Promise<{ readonly child: ChildProcess; readonly name: string }> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, process.cwd(), folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const [line] = await once(child.stdout ?? child, 'data');
  return { child, name: String(line).trim() };
}

async function kill(child: ChildProcess): Promise<void> {
  const end = once(child, 'exit');
  child.kill('SIGKILL');
  await end;
}

it('tells live processes from killed ones', async () => {
  const [one, other] = await Promise.all([aSibling(), aSibling()]);
  expect([one, other].map(({ name }) => own.isAlive(name))).toEqual([true, true]);
  await kill(one.child);
  expect([one, other].map(({ name }) => own.isAlive(name))).toEqual([false, true]);
  expect(own.isAlive(own.name)).toBe(true);
  const pids = liveProcesses(folder).map(({ pid }) => pid);
  expect(pids.sort()).toEqual([process.pid, other.child.pid ?? 0].sort());
});

it('keeps the files of a process that may be about to take its lock', async () => {
  const path = join(folder, 'processes', '1-new.lock');
  writeFileSync(path, '');
  expect(own.others()).toEqual(['1-new']);
  expect(own.ended()).toEqual([]);
  const longAgo = Date.now() / 1000 - 120;
  utimesSync(path, longAgo, longAgo);
  expect(own.ended()).toEqual(['1-new']);
});

it('removes the files of dead processes', async () => {
  const { child, name } = await aSibling();
  writeFileSync(own.journalOf(name), '');
  await kill(child);
  own.remove([name]);
  expect(existsSync(own.journalOf(name))).toBe(false);
  expect(await readdir(join(folder, 'processes'))).toEqual([`${own.name}.lock`]);
});
