import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { renderStatusTable } from '../../src/cli/start.ts';
import { aFolder } from '../support/own-folder.ts';

afterEach(() => vi.restoreAllMocks());

/** Returns what `parley start` requests when it gets these arguments. */
async function started(...args: readonly string[]) {
  const roles: (string | undefined)[] = [];
  const code = await runCommandLine(['start', ...args], {
    start: async (role) => {
      roles.push(role);
      return 0;
    },
    chatSocket: '',
    parts: { channels: [], plugins: [] },
  });
  return { roles, code };
}

it('starts in the given role, or in the configured one', async () => {
  expect(await started()).toEqual({ roles: [undefined], code: 0 });
  expect(await started('--role', 'worker')).toEqual({ roles: ['worker'], code: 0 });
});

it('lists the roles if an unknown one is given', async () => {
  const said: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(String(text)) > 0);
  const { roles, code } = await started('--role', 'boss');
  expect(roles).toEqual([]);
  expect(code).not.toBe(0);
  expect(said.join('')).toContain('all, gateway, worker');
});

it('shows no page or sign-in link for a process without a page', () => {
  const model = { name: 'm', isDemo: false };
  const worker = renderStatusTable(
    { model, channels: () => [], plugins: () => [], waiting: () => undefined },
    { signInLink: undefined, settings: '.env (1 value)' },
  );
  expect(worker).toContain('none (worker)');
  expect(worker).toMatch(/settings +\.env \(1 value\)/);
  expect(worker).not.toContain('sign in');
});

/** Resolves with how `parley start` ends with such a gateway when nothing reads its log. */
async function endOf(how: string): Promise<unknown> {
  const home = aFolder();
  await writeFile(join(home, 'parley.config.json'), '{ "shutdownMs": 100 }');
  const child = spawn(process.execPath, [join(import.meta.dirname, 'broken-gateway.ts'), how], {
    env: { PATH: process.env.PATH, PARLEY_TEST_HOME: home },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return once(child, 'exit');
}

it.each([
  ['its stop never ends', 'never'],
  ['nobody reads its log', 'unread'],
])(
  'exits with 1 once its store is lost, so that a supervisor restarts it, even if %s',
  async (_what, how) => {
    expect(await endOf(how)).toEqual([1, null]);
  },
);

it('exits with 1 if ending a failed start fails', async () => {
  expect(await endOf('fault')).toEqual([1, null]);
});

it('exits in time if told to during a slow start', async () => {
  expect(await endOf('starting')).toEqual([0, null]);
});
