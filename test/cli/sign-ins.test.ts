import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import type { Store } from '../../src/store/base/command.ts';
import { aServer, type RunningServer, send } from '../server/a-server.ts';
import { aStore } from '../support/own-store.ts';
import { publishAddress } from './publish-address.ts';
import { runParley } from './run-parley.ts';

let dataDir: string;
let store: Store;
let running: RunningServer;

beforeEach(async () => {
  ({ store, dataDir } = await aStore());
  running = await aServer({ store });
  await writeFile(join(dataDir, 'token'), running.token);
  onTestFinished(running.server.close);
  onTestFinished(await publishAddress(dataDir, running));
});

const parley = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runParley(args, { PARLEY_DATA_DIR: dataDir, ...env });
const statusBy = async (cookie: string) =>
  (await send({ port: running.port, path: '/api/status', headers: { cookie } })).status;

it('lists signed-in browsers and signs them out while the gateway runs', async () => {
  expect((await parley(['sign-ins', 'list'])).stdout).toBe('No browser is signed in.\n');
  const cookies = [
    await running.signIn('Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0'),
    await running.signIn(),
    await running.signIn(),
  ];
  const list = JSON.parse((await parley(['sign-ins', 'list', '--json'])).stdout);
  expect(list).toHaveLength(3);
  const { id } = list.find(({ browser }: { browser: string }) => browser === 'Firefox on Linux');
  expect(await parley(['sign-ins', 'end', id])).toMatchObject({ code: 0, stdout: 'Signed 1 browser out.\n' });
  expect(await Promise.all(cookies.map(statusBy))).toEqual([401, 200, 200]);
  const ended = JSON.parse((await parley(['sign-ins', 'end', '--all', '--json'])).stdout);
  expect(ended).toEqual({ ended: [expect.any(String), expect.any(String)] });
  expect(await Promise.all(cookies.map(statusBy))).toEqual([401, 401, 401]);
  expect(await parley(['sign-ins', 'end', id])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('./bin/parley.mjs sign-ins list'),
  });
  expect((await parley(['sign-ins', 'end'])).stderr).toContain('--all');
});

it('names the real reason for a rejected token, and accepts the right one afterwards', async () => {
  const wrong = { PARLEY_TOKEN: 'q7Zr2mXk9vTb4NwLs8Jd1HfG' };
  expect((await parley(['status'], wrong)).stderr).toMatch(
    /^PARLEY_TOKEN isn't the token of the gateway at /,
  );
  for (let i = 0; i < 10; i++) {
    await send({ port: running.port, path: '/api/status', headers: { authorization: 'Bearer guess' } });
  }
  expect((await parley(['status'], wrong)).stderr).toMatch(
    /too many wrong tokens came from this address: try again in \d+ s\./,
  );
  expect((await parley(['status'])).stdout).toContain(`at http://127.0.0.1:${running.port}`);
  await rm(join(dataDir, 'token'));
  expect((await parley(['status'])).stderr).toContain('There is no token in');
});
