/**
 * Commands that try to leave the sandbox, to read secrets or to outlive their call. `PARLEY_LONG=1` runs all of them,
 * otherwise a different twentieth each day.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isLong } from '../../support/long-run.ts';
import { type AShell, aShell } from './a-shell.ts';
import { escapes, runaways, wrappers } from './hostile-commands.ts';

const day = Math.floor(Date.now() / 86_400_000);
const shareOf = <T>(all: readonly T[]): readonly T[] =>
  isLong ? all : all.filter((_, index) => (index + day) % 20 === 0);

/** Runs `work` for each item, a few at a time. */
async function forAll<T>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  const waiting = items.map((item, index) => ({ item, index })).reverse();
  const takeAll = async () => {
    for (let next = waiting.pop(); next; next = waiting.pop()) await work(next.item, next.index);
  };
  await Promise.all(Array.from({ length: 6 }, takeAll));
}

let shell: AShell;
let server: Server;
let connections = 0;
const secret = `canary-${randomBytes(8).toString('hex')}`;
const secretNames = Array.from({ length: 12 }, (_, index) => `PARLEY_TEST_SECRET_${index}`);

beforeAll(async () => {
  for (const name of secretNames) process.env[name] = secret;
  shell = await aShell();
  await writeFile(join(shell.outside, 'secret'), secret);
  await mkdir(join(shell.workspace, '.git', 'hooks'), { recursive: true });
  await mkdir(join(shell.workspace, 'hooks'));
  server = createServer((socket) => {
    connections++;
    socket.end(secret);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterAll(async () => {
  for (const name of secretNames) delete process.env[name];
  server.close();
  await shell.remove();
});

describe('a hostile command', () => {
  it('neither reads, changes nor reaches anything outside, in 400 forms', async () => {
    const address = server.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    const targets = { outside: shell.outside, port, pid: process.pid };
    const forms = escapes.flatMap((attempt) => wrappers.map((wrap) => wrap(attempt(targets))));
    expect(forms.length).toBeGreaterThanOrEqual(400);
    await forAll(shareOf(forms), async (form) => {
      expect(await shell.bash(form, { timeoutSeconds: 20 }), form).not.toContain(secret);
    });
    expect(await readdir(shell.outside)).toEqual(['secret']);
    expect(await readFile(join(shell.outside, 'secret'), 'utf8')).toBe(secret);
    expect((await stat(join(shell.outside, 'secret'))).nlink).toBe(1);
    expect(await readdir(join(shell.workspace, '.git'))).toEqual(['hooks']);
    for (const folder of ['.git/hooks', 'hooks'])
      expect(await readdir(join(shell.workspace, folder))).toEqual([]);
    for (const place of ['/usr/local/bin/escaped', '/etc/escaped', '/tmp/escaped'])
      await expect(stat(place)).rejects.toThrow('ENOENT');
    expect(connections).toBe(0);
  });

  it('finds none of twelve secrets in the environments of 1,000 children', async () => {
    const children =
      'for i in 1 2 3 4 5 6 7; do env; done; env | xargs -0 echo; bash -lc env; cat /proc/[0-9]*/environ | tr "\\0" "\\n"';
    await forAll(shareOf(Array.from({ length: 100 })), async () => {
      const text = await shell.bash(children);
      expect(text).toContain('NO_COLOR=1');
      expect(text).not.toContain(secret);
      expect(text).not.toContain('PARLEY_TEST_SECRET');
    });
  });

  it('leaves no process behind, of 1,000 that try to outlive their call', async () => {
    const forms = Array.from(
      { length: 1000 },
      (_, index) => runaways[Math.floor(index / 10) % runaways.length] ?? '',
    );
    const token = randomBytes(6).toString('hex');
    await forAll(shareOf(forms), async (form, index) => {
      const command = form.replaceAll('RUNAWAY', `runaway-${token}`);
      // A third ends by itself, a third at the time limit, and a third is aborted, some while the sandbox is being made.
      if (index % 3 === 0) await shell.bash(`${command}\ntrue`);
      else if (index % 3 === 1)
        await shell.bash(`${command}\ntrap "" TERM; sleep 600`, { timeoutSeconds: 1 });
      else {
        const controller = new AbortController();
        setTimeout(() => controller.abort(new Error('aborted')), index % 50);
        const call = shell.bash(`${command}\nsleep 600`, { signal: controller.signal });
        await expect(call).rejects.toThrow('aborted');
      }
    });
    // The sandboxes, then whatever is in one.
    await expectNone(shell.workspace);
    await expectNone(`runaway-${token}`);
  });

  it('ends with Parley when that is killed', async () => {
    const token = `killed-${randomBytes(6).toString('hex')}`;
    const child = spawn(process.execPath, [join(import.meta.dirname, 'until-killed.ts'), token], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [folder] = (await once(child.stdout, 'data')) as [Buffer];
    expect(await processesWith(token)).not.toEqual([]);
    child.kill('SIGKILL');
    await expectNone(token);
    await rm(String(folder).trim(), { recursive: true });
  });

  it('holds neither memory nor pipes with 100 MB of output', async () => {
    const before = process.memoryUsage().rss;
    const text = await shell.bash(
      'yes 0123456789012345678901234567890123456789 | head -c 100000000; echo; echo end',
    );
    expect(text.endsWith('\nend\n(exit code 0)')).toBe(true);
    expect(process.memoryUsage().rss - before).toBeLessThan(60_000_000);
  });

  it('runs exactly the arguments that were described', async () => {
    const program = join(shell.folder, 'records');
    const started = join(shell.folder, 'started');
    const script = `#!/bin/bash
printf '%s\\0' "\${@: -4}" > ${started}
echo '{ "child-pid": 0 }' >&3
echo '{ "exit-code": 0 }' >&3
`;
    await writeFile(program, script, { mode: 0o755 });
    const start = shell.recording(program);
    const forms = escapes.flatMap((attempt) =>
      wrappers.map((wrap) => wrap(attempt({ outside: '/o', port: 1, pid: 1 }))),
    );
    for (const form of [...shareOf(forms), ' echo a \n ']) {
      await start(form);
      const argv = (await readFile(started, 'utf8')).split('\0').slice(0, -1);
      expect(argv).toEqual(['/bin/bash', '-c', '--', form]);
      expect(shell.describe({ command: form })?.endsWith(`\n\n${form}`)).toBe(true);
    }
  });
});

/** Returns this machine's processes whose command line contains the text. */
async function processesWith(text: string): Promise<readonly number[]> {
  const ids = (await readdir('/proc')).map(Number).filter((id) => id > 1 && id !== process.pid);
  const lines = await Promise.all(ids.map((id) => readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '')));
  return ids.filter((_, index) => lines[index]?.includes(text));
}

/** Fails if processes with the text in their command line remain, and ends them, also where a variant has left them. */
async function expectNone(text: string): Promise<void> {
  try {
    await expect.poll(() => processesWith(text)).toEqual([]);
  } finally {
    for (const id of await processesWith(text)) process.kill(id, 'SIGKILL');
  }
}
