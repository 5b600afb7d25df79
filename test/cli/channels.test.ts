import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startSignalServer } from '../platforms/signal/server.ts';
import { aServer } from '../server/a-server.ts';
import { aFolder } from '../support/own-folder.ts';
import { publishAddress } from './publish-address.ts';
import { runParley } from './run-parley.ts';

const slow = 120_000;

async function anUnlinkedServer() {
  const server = await startSignalServer({ isUnlinked: true });
  onTestFinished(() => server.close());
  return server;
}

describe('parley channels status', () => {
  it("shows the configuration's channels if Parley is not running", { timeout: slow }, async () => {
    const env = { PARLEY_DATA_DIR: aFolder(), PARLEY_PORT: '0' };
    const { code, stdout } = await runParley(['channels', 'status'], env);
    expect(code).toBe(0);
    expect(stdout).toMatch(/Parley isn't running/);
    expect(stdout).toMatch(/telegram +off \(set TELEGRAM_BOT_TOKEN to enable\)/);
    expect(stdout).toMatch(/terminal +configured/);
  });

  it('asks the running gateway of its folder, whatever port that uses', {
    timeout: slow,
  }, async () => {
    const folder = aFolder();
    const running = await aServer();
    const withdraw = await publishAddress(folder, running);
    onTestFinished(async () => {
      withdraw();
      await running.server.close();
    });
    const env = { PARLEY_TOKEN: running.token, PARLEY_DATA_DIR: folder, PARLEY_PORT: '1' };
    const { stdout } = await runParley(['channels', 'status', '--json'], env);
    expect(JSON.parse(stdout)).toEqual({
      isRunning: true,
      channels: [{ id: 'secret-channel', state: 'off', detail: 'no token' }],
    });
  });
});

const work = { accounts: { work: { apiUrl: 'http://127.0.0.1:1', number: '+15550000002' } } };

describe('parley channels', () => {
  it('lists named accounts by their connections', { timeout: slow }, async () => {
    const folder = aFolder();
    const config = join(folder, 'parley.config.json');
    await writeFile(config, JSON.stringify({ channels: { signal: work } }));
    const env = { PARLEY_DATA_DIR: folder, PARLEY_CONFIG: config, PARLEY_PORT: '1' };
    const { stdout } = await runParley(['channels', 'status'], env);
    expect(stdout).toMatch(/ {2}signal\.work configured/);
    expect(stdout).not.toMatch(/ {2}signal /);
    const { stderr } = await runParley(['channels', 'login', 'signal'], env);
    expect(stderr).toContain('Did you mean signal.work?');
    expect((await runParley(['channels', 'login', 'icq'])).stderr).toMatch(/Use one of: .*signal/);
  });
});

describe('parley channels login', () => {
  it('shows a link to scan and ends once it was scanned', { timeout: slow }, async () => {
    const server = await anUnlinkedServer();
    const child = await startLogin(server.url, '--json');
    const ended = new Promise((resolve) => child.once('exit', resolve));
    const steps: { kind: string; uri?: string; account?: string }[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      steps.push(JSON.parse(line));
      if (steps.length === 1) server.finishLink({ number: '+15550000077' });
    }
    expect(await ended).toBe(0);
    expect(steps).toEqual([
      { kind: 'scan', uri: expect.stringMatching(/^sgnl:\/\/linkdevice\?uuid=/) },
      { kind: 'done', account: '+15550000077' },
    ]);
  });

  it('prints the link without a code if there is no screen to scan it from', { timeout: slow }, async () => {
    const server = await anUnlinkedServer();
    const child = await startLogin(server.url);
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line);
      if (line.startsWith('sgnl://')) server.finishLink({ number: '+15550000077' });
    }
    expect(lines.join('\n')).toMatch(
      /Scan this.*\n\nsgnl:\/\/linkdevice\?uuid=.*\n\nLinked: \+15550000077\./,
    );
    expect(lines.join('\n')).not.toMatch(/[▀▄█]/);
  });

  it.each([
    ['telegram', /telegram is off: set TELEGRAM_BOT_TOKEN to enable/],
    ['web', /web has no login/],
    ['pigeon', /“pigeon” isn't a channel. Use one of: web, terminal/],
  ])('says why %s has no login', { timeout: slow }, async (channel, problem) => {
    const { code, stderr } = await runParley(['channels', 'login', channel], {
      PARLEY_DATA_DIR: aFolder(),
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(problem);
  });
});

/** Starts `parley channels login signal`, which keeps running until somebody scans the code. */
async function startLogin(apiUrl: string, ...options: readonly string[]) {
  const args = ['../../bin/parley.mjs', 'channels', 'login', 'signal', ...options];
  const own = { PARLEY_TEST_HOME: '/nowhere', PARLEY_DATA_DIR: aFolder(), SIGNAL_API_URL: apiUrl };
  return spawn(process.execPath, args, {
    ...{ cwd: import.meta.dirname, env: { PATH: process.env.PATH, ...own } },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}
