import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished, vi } from 'vitest';
import { printLines } from '../../src/cli/print.ts';
import { reloadSignal } from '../../src/cli/reload.ts';
import { aFolder } from '../support/own-folder.ts';
import { publishAddress } from './publish-address.ts';
import { runParley } from './run-parley.ts';

/** Prints more than a pipe holds; with `pipe`, the reading end is closed right away. */
async function printSchema(output: 'pipe' | number) {
  const child = spawn(process.execPath, ['../../bin/parley.mjs', 'config', 'schema'], {
    cwd: import.meta.dirname,
    env: { PATH: process.env.PATH, PARLEY_TEST_HOME: '/nowhere' },
    stdio: ['ignore', output, 'pipe'],
  });
  child.stdout?.destroy();
  const [code, stderr] = await Promise.all([
    new Promise((resolve) => child.once('exit', resolve)),
    child.stderr === null ? '' : text(child.stderr),
  ]);
  return { code, stderr };
}

it('ends silently if its reader leaves early, as head does', async () => {
  expect(await printSchema('pipe')).toEqual({ code: 0, stderr: '' });
});

it.skipIf(!existsSync('/dev/full'))('fails if a full disk accepts no output', async () => {
  const full = openSync('/dev/full', 'w');
  expect(await printSchema(full)).toEqual({ code: 1, stderr: 'ENOSPC: no space left on device, write\n' });
  closeSync(full);
});

it('hides no line after an escape sequence that is never closed', () => {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  printLines(['one \u001b]0;', 'two', 'three\u0007']);
  const [printed] = write.mock.calls.flat();
  write.mockRestore();
  expect(printed).toBe('one ]0;\ntwo\nthree\n');
});

it('prints JSON for programs', async () => {
  const dataDir = aFolder();
  const parley = async (...args: string[]) => {
    const { stdout } = await runParley([...args, '--json'], { PARLEY_DATA_DIR: dataDir, PARLEY_PORT: '0' });
    return JSON.parse(stdout);
  };
  expect(await parley('config', 'check')).toEqual({ sources: expect.any(String), warnings: [] });
  expect(await parley('restore')).toEqual([]);
  process.once(reloadSignal, () => undefined);
  onTestFinished(await publishAddress(dataDir, { url: 'http://127.0.0.1:1', role: 'worker' }));
  expect(await parley('reload')).toEqual({ told: [expect.stringContaining(`worker ${process.pid}`)] });
});
