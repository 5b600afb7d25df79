import { chmod, mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { renderChecks } from '../../src/cli/doctor/check.ts';
import { checkRedis, checkStore } from '../../src/cli/doctor/engine-checks.ts';
import { checkNode, judgeSpace } from '../../src/cli/doctor/host-checks.ts';
import type { Config } from '../../src/config/config.ts';
import { readEnvironment } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { Secret } from '../../src/config/secret.ts';
import { startPrivateServer } from '../../src/redis/private-server.ts';
import { sendInline } from '../../src/redis/server-process.ts';
import { raiseAlert, resolveAlert } from '../../src/store/alerts/alert.ts';
import { startTelegramServer } from '../platforms/telegram/server.ts';
import { aFreePort } from '../support/free-port.ts';
import { openStore } from '../support/open-store.ts';
import { aFolder } from '../support/own-folder.ts';
import { silentLog } from '../support/silent-log.ts';
import { runParley } from './run-parley.ts';

const slow = 60_000;

/** Each check needs only a few of the settings. */
const configOf = (settings: Partial<Config>) => settings as Config;

async function diagnose(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const { code, stdout, stderr } = await runParley(['doctor', '--json', ...args], env);
  expect(stderr).toBe('');
  const report = JSON.parse(stdout) as {
    isWell: boolean;
    checks: { name: string; result: string; detail: string; fix?: string }[];
  };
  return {
    code,
    stdout,
    ...report,
    of: (name: string) => report.checks.find((check) => check.name === name),
  };
}

describe('parley doctor', () => {
  it('reports only the missing key and unpriced models on a fresh machine', {
    timeout: slow,
  }, async () => {
    const env = { PARLEY_DATA_DIR: join(aFolder(), 'data'), PARLEY_PORT: String(await aFreePort()) };
    const { code, isWell, checks, of } = await diagnose(env);
    expect({ code, isWell, failed: checks.filter(({ result }) => result === 'failed') }).toEqual({
      code: 0,
      isWell: true,
      failed: [],
    });
    expect(checks.filter(({ result }) => result !== 'ok').map(({ name }) => name)).toEqual(['model']);
    expect(of('model')?.fix).toContain('ANTHROPIC_API_KEY');
    expect(of('data folder')?.detail).toContain('the first start creates');
    await expect(stat(env.PARLEY_DATA_DIR)).rejects.toThrow('ENOENT');
    const config = join(aFolder(), 'parley.config.json');
    const models = { own: { provider: 'ollama', id: 'qwen3' } };
    await writeFile(config, JSON.stringify({ budgets: { gateway: 5 }, models }));
    const { code: again, stdout } = await runParley(['doctor'], { ...env, PARLEY_CONFIG: config });
    expect(again).toBe(0);
    expect(stdout).toMatch(/ {2}warning {2}model +the demo model.*\n +→ set ANTHROPIC_API_KEY/);
    expect(stdout).toMatch(
      / {2}warning {2}budgets +.* no prices for own, .*\n +→ set models\.<alias>\.prices/,
    );
    expect(stdout).toMatch(/2 warnings\.\n$/);
  });

  it('explains configuration errors, including a placeholder key', {
    timeout: slow,
  }, async () => {
    const { code, of } = await diagnose({ ANTHROPIC_API_KEY: 'your-api-key-here', PARLEY_PORT: 'seven' });
    expect(code).toBe(1);
    expect(of('config')?.detail).toMatch(/ANTHROPIC_API_KEY.*placeholder.*\n.*PARLEY_PORT/);
  });

  it('checks the networks and shows no secret', { timeout: slow }, async () => {
    const server = await startTelegramServer();
    onTestFinished(() => server.close());
    const env = {
      PARLEY_DATA_DIR: aFolder(),
      PARLEY_PORT: '0',
      TELEGRAM_API_ROOT: server.apiRoot,
      TELEGRAM_BOT_TOKEN: server.token,
    };
    const right = await diagnose(env);
    expect(right.of('telegram')).toMatchObject({
      result: 'ok',
      detail: expect.stringContaining('ParleyTestBot'),
    });
    const token = `7000001:${'aB3'.repeat(12)}`;
    const wrong = await diagnose({ ...env, TELEGRAM_BOT_TOKEN: token });
    expect(wrong.code).toBe(1);
    expect(wrong.of('telegram')).toMatchObject({
      result: 'failed',
      detail: expect.stringContaining('token'),
    });
    expect(wrong.stdout).not.toContain(token);
    expect(server.calls.filter(({ method }) => method !== 'getMe')).toEqual([]);
  });

  it('fixes permissions only with --fix', { timeout: slow }, async () => {
    const dataDir = join(aFolder(), 'data');
    await mkdir(dataDir);
    await writeFile(join(dataDir, 'token'), 'x'.repeat(43));
    await chmod(dataDir, 0o755);
    await chmod(join(dataDir, 'token'), 0o644);
    const env = { PARLEY_DATA_DIR: dataDir, PARLEY_PORT: '0' };
    const modes = async () =>
      Promise.all([dataDir, join(dataDir, 'token')].map(async (path) => (await stat(path)).mode & 0o777));
    const looked = await diagnose(env);
    expect(looked.checks.filter(({ name }) => name === 'permissions')).toMatchObject([
      { result: 'warning', fix: expect.stringContaining('chmod 700') },
      { result: 'warning', fix: expect.stringContaining('chmod 600') },
    ]);
    expect(await modes()).toEqual([0o755, 0o644]);
    const mended = await diagnose(env, '--fix');
    expect(mended.checks.filter(({ name }) => name === 'permissions').map(({ result }) => result)).toEqual([
      'ok',
      'ok',
    ]);
    expect(await modes()).toEqual([0o700, 0o600]);
  });

  it('tells a free port from one that another program uses', { timeout: slow }, async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const env = { PARLEY_DATA_DIR: aFolder(), PARLEY_PORT: String(port) };
    server.on('connection', (socket) => socket.end('nothing for you\n').resume());
    expect((await diagnose(env)).of('page')).toMatchObject({
      result: 'failed',
      fix: expect.stringContaining('PARLEY_PORT'),
    });
    await new Promise((resolve) => server.close(resolve));
    expect((await diagnose(env)).of('page')).toMatchObject({
      result: 'ok',
      detail: expect.stringMatching(/free/),
    });
  });
});

describe('the configured Redis', () => {
  it('checks Redis for its version and its eviction policy', { timeout: slow }, async () => {
    const dataDir = aFolder();
    const server = await startPrivateServer({ dataDir, log: silentLog, clock: systemClock });
    onTestFinished(() => server.stop());
    const config = configOf({ redisUrl: new Secret(server.socketPath) });
    expect(await checkRedis(config)).toMatchObject({
      result: 'ok',
      detail: expect.stringMatching(/noeviction/),
    });
    await sendInline(server.socketPath, 'CONFIG SET maxmemory-policy allkeys-lru', 5_000);
    expect(await checkRedis(config)).toMatchObject({
      result: 'warning',
      detail: expect.stringContaining('allkeys-lru'),
      fix: expect.stringContaining('noeviction'),
    });
  });

  it('fails within seconds if Redis does not answer', { timeout: slow }, async () => {
    const url = new Secret(`redis://:geheimes-wort@127.0.0.1:${await aFreePort()}`);
    const check = await checkRedis(configOf({ redisUrl: url }));
    expect(check).toMatchObject({ result: 'failed', detail: expect.stringContaining('ECONNREFUSED') });
    expect(JSON.stringify(check)).not.toContain('geheimes-wort');
  });
});

describe('the store', () => {
  const aDatabase = async () => {
    const dataDir = aFolder();
    const store = await openStore({ kind: 'sqlite', dataDir });
    await store.close();
    const change = (sql: string) => {
      const db = new BetterSqlite3(join(dataDir, 'parley.db'));
      db.exec(sql);
      db.close();
    };
    return { dataDir, change, check: async () => (await checkStore(configOf({ dataDir })))[0] };
  };

  it('finds the database intact, even while a process uses it', async () => {
    const { dataDir, check } = await aDatabase();
    expect(await check()).toMatchObject({ result: 'ok', detail: expect.stringMatching(/intact$/) });
    const store = await openStore({ kind: 'sqlite', dataDir });
    expect(await check()).toMatchObject({ result: 'ok' });
    await store.close();
  });

  it('fails for the schema of a later version and accepts an older one', async () => {
    const { check, change } = await aDatabase();
    change('delete from kysely_migration');
    expect(await check()).toMatchObject({
      result: 'ok',
      detail: expect.stringContaining('updates its schema'),
    });
    change("insert into kysely_migration values ('9999-later', '2030-01-01')");
    expect(await check()).toMatchObject({ result: 'failed', detail: expect.stringContaining('9999-later') });
  });

  it('names models found to lack tools without asking them', async () => {
    const dataDir = aFolder();
    const store = await openStore({ kind: 'sqlite', dataDir });
    for (const id of ['refuses', 'plain', 'gone']) {
      const subject = `ollama/${id}`;
      await store.write(raiseAlert, { kind: 'model-without-tools', subject });
      // The fact remains after the owner has read and dismissed the alert.
      await store.write(resolveAlert, { kind: 'model-without-tools', subject });
    }
    await store.close();
    const settings = {
      model: 'ollama/refuses',
      models: { plain: { provider: 'ollama', id: 'plain', tools: false } },
    };
    await writeFile(join(dataDir, 'parley.config.json'), JSON.stringify(settings));
    const config = { ...loadConfig(readEnvironment({}), dataDir), dataDir };
    const [, ...others] = await checkStore(config);
    const detail = expect.stringMatching(
      /^its server reported on \d{4}-\d\d-\d\d \d\d:\d\d that ollama\/refuses doesn't support tools/,
    );
    expect(others).toMatchObject([{ name: 'tools', result: 'warning', detail }]);
  });

  it('fails for a damaged database file', async () => {
    const { dataDir, check } = await aDatabase();
    // Otherwise the write-ahead log would make up for the damaged file.
    await rm(join(dataDir, 'parley.db-wal'), { force: true });
    await writeFile(join(dataDir, 'parley.db'), Buffer.alloc(8192, 'not a database '));
    expect(await check()).toMatchObject({
      ...{ result: 'failed', detail: expect.stringContaining('damaged') },
      fix: 'stop Parley, then restore a backup: ./bin/parley.mjs restore',
    });
  });

  it.skipIf(process.env.PARLEY_TEST_DATABASE_URL === undefined)(
    'checks the PostgreSQL connection',
    async () => {
      const url = process.env.PARLEY_TEST_DATABASE_URL ?? '';
      const [there] = await checkStore(configOf({ databaseUrl: new Secret(url) }));
      expect(there).toMatchObject({ result: 'ok', detail: expect.stringContaining('PostgreSQL') });
      const nowhere = Object.assign(new URL(url), { pathname: '/no_such_database' }).href;
      const [away] = await checkStore(configOf({ databaseUrl: new Secret(nowhere) }));
      expect(away).toMatchObject({ result: 'failed', fix: expect.stringContaining('DATABASE_URL') });
    },
  );
});

it('judges Node.js versions and disk space', () => {
  expect(checkNode('24.0.0').result).toBe('ok');
  expect(checkNode('22.9.1').result).toBe('failed');
  const megabyte = 1024 * 1024;
  expect([199, 201, 5000].map((free) => judgeSpace(free * megabyte, '/data').result)).toEqual([
    'failed',
    'warning',
    'ok',
  ]);
});

it('shows fixes only where needed, and a summary', () => {
  const table = renderChecks([
    { name: 'a', result: 'ok', detail: 'fine', fix: 'never shown' },
    { name: 'long one', result: 'failed', detail: 'first line\n  - second line', fix: 'do this' },
    { name: 'b', result: 'warning', detail: 'hm' },
  ]);
  expect(table).toBe(
    [
      '  ok       a         fine',
      '  FAILED   long one  first line',
      '                     - second line',
      '                     → do this',
      '  warning  b         hm',
      '',
      '  1 failed, 1 warning.',
    ].join('\n'),
  );
});
