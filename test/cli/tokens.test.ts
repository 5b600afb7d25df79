import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { aServer, send } from '../server/a-server.ts';
import { aStore } from '../support/own-store.ts';
import { publishAddress } from './publish-address.ts';
import { runParley } from './run-parley.ts';

it('creates a token, lists it without its secret, and revokes it', async () => {
  const { store, dataDir } = await aStore();
  const running = await aServer({ store });
  await writeFile(join(dataDir, 'token'), running.token);
  onTestFinished(running.server.close);
  onTestFinished(await publishAddress(dataDir, running));
  const parley = (...args: readonly string[]) => runParley(args, { PARLEY_DATA_DIR: dataDir });
  const status = async (secret: string) => {
    const headers = { authorization: `Bearer ${secret}` };
    return (await send({ port: running.port, path: '/api/status', headers })).status;
  };

  expect((await parley('tokens', 'list')).stdout).toBe('There are no tokens.\n');
  const created = await parley('tokens', 'create', 'backup script', '--scopes', 'read', '--days', '30');
  const [secret = '', advice] = created.stdout.split('\n');
  expect([secret, advice]).toEqual([
    expect.stringMatching(/^parley_[\w-]{43}$/),
    expect.stringContaining('now'),
  ]);
  expect(await status(secret)).toBe(200);
  const listed = await parley('tokens', 'list');
  expect(listed.stdout).toMatch(/backup script {2}read {2}\S.*used.* {2}expires /);
  expect(listed.stdout).not.toContain(secret);

  expect((await parley('tokens', 'revoke', 'backup script')).stdout).toContain('Revoked backup script.');
  expect(await status(secret)).toBe(401);
  expect((await parley('tokens', 'list')).stdout).toContain('revoked');
  expect(await parley('tokens', 'revoke', 'backup script')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('tokens list'),
  });
  for (const scopes of ['', 'chat,everything'])
    expect(await parley('tokens', 'create', 'x', '--scopes', scopes)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('chat,read,operate'),
    });
  expect((await parley('tokens', 'create', 'x', '--scopes', 'chat', '--days', '0')).stderr).toContain('days');
});
