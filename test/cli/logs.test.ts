import { spawn } from 'node:child_process';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished, vi } from 'vitest';
import { readSince } from '../../src/cli/logs.ts';
import { logPath, openLogFile } from '../../src/logging/log-file.ts';
import { createLogger } from '../../src/logging/logger.ts';
import { aFolder } from '../support/own-folder.ts';
import { runParley } from './run-parley.ts';

const line = (time: string, event: string) => JSON.stringify({ level: 'info', time, pid: 7, event });

/** Creates a data folder with a log of two files, whose lines are a minute apart. */
async function aLog(events: number): Promise<{ dataDir: string; path: string; lines: string[] }> {
  const dataDir = aFolder();
  const path = logPath(dataDir);
  const lines = Array.from({ length: events }, (_, n) =>
    line(new Date(Date.UTC(2026, 10, 27, 10, n)).toISOString(), `event.${n}`),
  );
  await mkdir(dirname(path));
  await writeFile(
    `${path}.1`,
    lines
      .slice(0, 2)
      .map((one) => `${one}\n`)
      .join(''),
  );
  await writeFile(
    path,
    lines
      .slice(2)
      .map((one) => `${one}\n`)
      .join(''),
  );
  return { dataDir, path, lines };
}

const logs = (dataDir: string, ...args: string[]) =>
  runParley(['logs', ...args], { PARLEY_DATA_DIR: dataDir });

it('shows the last lines of both files, formatted or exactly as written', async () => {
  const { dataDir, lines } = await aLog(5);
  expect((await logs(dataDir, '--json')).stdout).toBe(`${lines.join('\n')}\n`);
  expect((await logs(dataDir, '-n', '4', '--json')).stdout).toBe(`${lines.slice(1).join('\n')}\n`);
  const since = await logs(dataDir, '--since', '2026-11-27T10:03:00Z', '--json');
  expect(since.stdout).toBe(`${lines.slice(3).join('\n')}\n`);
  expect((await logs(dataDir, '-n', '1')).stdout).toMatch(/^\[2026-11-\d\d \d\d:04:00\] INFO: event\.4\n$/);
});

it.each([
  [['-n', '0'], 'from 1 to'],
  [['-n', 'many'], 'from 1 to'],
  [['--since', 'lately'], "isn't a time"],
])('refuses %j with an example', async (args, words) => {
  const { dataDir } = await aLog(3);
  expect(await logs(dataDir, ...args)).toMatchObject({ code: 1, stderr: expect.stringContaining(words) });
});

it('says where the log will be if there is none yet', async () => {
  const dataDir = aFolder();
  const { code, stderr } = await logs(dataDir);
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining(`no log in ${logPath(dataDir)} yet. Start Parley`),
  ]);
});

it('follows the log across a new file', async () => {
  const { dataDir, path } = await aLog(3);
  const child = spawn(process.execPath, ['bin/parley.mjs', 'logs', '-f', '-n', '1', '--json'], {
    env: { PATH: process.env.PATH, PARLEY_TEST_HOME: '/nowhere', PARLEY_DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill());
  const shown = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await shown.next()).value ?? '{}').event;
  expect(await next()).toBe('event.2');
  // Until the reader has opened the file, a line may be skipped; it is repeated until it is seen.
  const file = openLogFile(path, { maxBytes: 1_000 });
  const repeat = setInterval(() => file.write(`${line('2026-11-27T11:00:00Z', 'x'.repeat(200))}\n`), 50);
  onTestFinished(async () => {
    clearInterval(repeat);
    await file.close();
  });
  for (let n = 0; n < 12; n++) expect(await next()).toBe('x'.repeat(200));
  clearInterval(repeat);
  // The next line would make a file that has just been moved away.
  const sizeOf = (file: string) =>
    stat(file).then(
      ({ size }) => size,
      () => 0,
    );
  expect((await sizeOf(path)) + (await sizeOf(`${path}.1`))).toBeLessThanOrEqual(1_000);
});

it("reads a duration and a date in the machine's time zone", () => {
  const now = Date.UTC(2026, 10, 27);
  expect(['90s', '10m', '2h', '3d'].map((text) => now - readSince(text, now))).toEqual([
    90_000, 600_000, 7_200_000, 259_200_000,
  ]);
  expect(readSince('2026-11-27', now)).toBe(new Date(2026, 10, 27).getTime());
  expect(readSince('2026-11-27 14:00', now)).toBe(new Date(2026, 10, 27, 14).getTime());
});

it('keeps every line in a file that only its owner can read, without secrets', async () => {
  const path = logPath(aFolder());
  const file = openLogFile(path, { maxBytes: 1_000_000 });
  const output = join(dirname(dirname(path)), 'output');
  const { log, redactor, close } = await createLogger({
    level: 'info',
    isPretty: true,
    destination: output,
    file,
  });
  redactor.add('secret-value');
  for (let n = 0; n < 1_000; n++) log.info({ n, key: 'secret-value' }, 'line.written');
  await close();
  const lines = (await readFile(path, 'utf8'))
    .trim()
    .split('\n')
    .map((one) => JSON.parse(one));
  expect(lines.map(({ n, key }) => [n, key])).toEqual(
    Array.from({ length: 1_000 }, (_, n) => [n, '[secret]']),
  );
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

it('reports once that the disk accepts no lines, and later how many were lost', async () => {
  const path = logPath(aFolder());
  // A file where its folder should be.
  await writeFile(dirname(path), '');
  const faults: unknown[] = [];
  const file = openLogFile(path, { maxBytes: 1_000, onFault: (fault) => faults.push(fault) });
  file.write('one\n');
  await vi.waitFor(() => expect(faults).toHaveLength(1));
  file.write('two\n');
  await rm(dirname(path));
  await vi.waitFor(
    async () => {
      file.write('later\n');
      const [first = '', second] = (await readFile(path, 'utf8')).split('\n');
      expect([JSON.parse(first).event, second]).toEqual(['log.lines-dropped', 'later']);
    },
    { timeout: 5_000 },
  );
  await file.close();
  expect(faults).toHaveLength(1);
});
