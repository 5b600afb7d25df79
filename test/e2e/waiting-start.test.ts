import { execFileSync } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { runParley } from '../cli/run-parley.ts';
import { countEvents, findBreaches, untilAtRest } from './conservation.ts';
import { makeDoor } from './cut-proxy.ts';
import { describeRow } from './describe-row.ts';
import { databaseServer, makeDatabase } from './own-database.ts';
import { channelShown, pageToken } from './page-state.ts';
import { canMount, mountSmallDisk, type SmallDisk } from './small-disk.ts';
import { type Stage, startStage } from './stage.ts';
import { ada, eve, said, untilSaid } from './telegram-chat.ts';
import { until } from './until.ts';

const headers = { authorization: `Bearer ${pageToken}` };

async function readiness(url: string): Promise<{ readonly httpStatus: number; readonly text: string }> {
  const answer = await fetch(`${url}/readyz`);
  return { httpStatus: answer.status, text: await answer.text() };
}

async function untilReady(url: string): Promise<void> {
  const isReady = async () => (await readiness(url).catch(() => undefined))?.httpStatus === 200;
  await until(isReady, { what: 'readiness' });
}

async function problemsAt(url: string): Promise<string> {
  const status = (await (await fetch(`${url}/api/status`, { headers })).json()) as {
    problems: readonly { readonly text: string }[];
  };
  return status.problems.map(({ text }) => text).join('\n');
}

/** Takes away the disk space, or the right to write, and gives it back. */
type Plague = {
  readonly what: string;
  readonly says: RegExp;
  strike(disk: SmallDisk): Promise<void>;
  lift(disk: SmallDisk): Promise<void>;
};

function remount(disk: SmallDisk, mode: 'ro' | 'rw'): void {
  execFileSync('mount', ['-o', `remount,${mode}`, join(disk.dataDir, '..')], { stdio: 'ignore' });
}

const plagues: readonly Plague[] = [
  {
    what: 'a disk that is full to the last byte',
    says: /on a disk that is full/,
    strike: (disk) => disk.fill(),
    lift: (disk) => disk.free(),
  },
  {
    what: 'a file system that is read-only',
    says: /file system that is read-only/,
    strike: async (disk) => remount(disk, 'ro'),
    lift: async (disk) => remount(disk, 'rw'),
  },
];

// A separate disk requires the right to mount one, which an ordinary user doesn't have.
describeRow(
  'a start on',
  (atEnd) => {
    let disk: SmallDisk;
    let gateway: Stage;

    beforeAll(async () => {
      disk = await mountSmallDisk(400, atEnd);
      gateway = await startStage({ dataDir: disk.dataDir }, atEnd);
    });

    test.for(plagues)(
      'reports $what at the start, shows what it can, and continues by itself',
      async (plague, { expect }) => {
        const { telegram, dataDir } = gateway;
        const events = countEvents(dataDir);
        const [before, after] = [`Before ${plague.what}.`, `After ${plague.what}.`];
        telegram.userSends({ from: ada, text: before });
        await untilSaid(telegram, { chat: ada.id, text: `You said: ${before}` });
        await untilAtRest(dataDir, events + 1);
        await gateway.parley().stop();
        const answers = said(telegram, ada.id);
        const logged = async () =>
          (await readFile(join(dataDir, 'test.log'), 'utf8')).split('start.postponed');
        const postponed = (await logged()).length;

        await plague.strike(disk);
        telegram.userSends({ from: ada, text: after });
        const { url } = await gateway.start();
        expect(await readiness(url)).toMatchObject({
          httpStatus: 503,
          text: expect.stringMatching(/data folder|store/),
        });
        expect((await fetch(`${url}/healthz`)).status).toBe(200);
        expect((await fetch(url)).status).toBe(200);
        expect(await problemsAt(url)).toMatch(plague.says);
        expect((await logged()).length).toBeGreaterThan(postponed);
        // A request that has to write is refused, and the cursor stays.
        const form = { ...headers, origin: url, 'content-type': 'application/json', 'x-parley': '1' };
        const signIn = await fetch(`${url}/api/sign-in`, {
          method: 'POST',
          headers: form,
          body: JSON.stringify({ token: pageToken }),
        });
        expect([signIn.status, await signIn.text()]).toEqual([
          503,
          expect.stringContaining('please ask again'),
        ]);
        expect((await fetch(`${url}/channels/x/webhook/y`, { method: 'POST', body: '{}' })).status).toBe(503);
        const env = { PARLEY_DATA_DIR: dataDir, PARLEY_PORT: new URL(url).port, PARLEY_TOKEN: pageToken };
        const shown = await runParley(['status'], env);
        expect(shown.stdout + shown.stderr).toMatch(plague.says);
        expect((await runParley(['why', 'telegram:1'], env)).stderr).not.toContain('disk');
        expect((await runParley(['outbox', 'list'], env)).code).toBe(0);
        expect(said(telegram, ada.id)).toEqual(answers);
        expect(telegram.updates.pending).toHaveLength(1);

        await plague.lift(disk);
        await untilSaid(telegram, { chat: ada.id, text: `You said: ${after}` });
        await untilReady(url);
        await untilAtRest(dataDir, events + 2);
        expect(said(telegram, ada.id)).toEqual([...answers, `You said: ${after}`]);
        expect((await channelShown(url, 'telegram')).state).toBe('on');
        expect(findBreaches(dataDir)).toEqual([]);
      },
    );
  },
  { isSkipped: !canMount() },
);

describe.skipIf(!canMount())('a start on', () => {
  test('creates its files on a full disk once there is space', {
    timeout: 300_000,
  }, async ({ expect, onTestFinished }) => {
    const disk = await mountSmallDisk(400, onTestFinished);
    await disk.fill();
    const gateway = await startStage({ dataDir: disk.dataDir }, onTestFinished);
    const { url } = gateway.parley();
    expect((await readiness(url)).httpStatus).toBe(503);
    await disk.free();
    await untilReady(url);
    gateway.model.script(() => ({ text: 'Hello.' }));
    gateway.telegram.userSends({ from: ada, text: 'Hi.' });
    await untilSaid(gateway.telegram, { chat: ada.id, text: 'Hello.' });
  });
});

// Without PARLEY_TEST_DATABASE_URL there is no PostgreSQL on this machine.
test.skipIf(databaseServer === undefined)(
  'reports that PostgreSQL is away at the start, and continues with reloaded settings once it is back',
  async ({ expect, onTestFinished }) => {
    const database = await makeDatabase(onTestFinished);
    const url = new URL(database.url);
    const door = await makeDoor({ host: url.hostname, port: Number(url.port) }, onTestFinished);
    url.port = String(door.port);
    door.shut();
    const gateway = await startStage({ env: { DATABASE_URL: url.href } }, onTestFinished);
    const { telegram, model, parley, dataDir } = gateway;
    const { httpStatus, text } = await readiness(parley().url);
    expect(httpStatus).toBe(503);
    expect(JSON.parse(text)).toMatchObject({ status: 'not ready', missing: ['store'] });
    expect(await problemsAt(parley().url)).toMatch(/PostgreSQL is not reachable/);
    // An attempt leaves nothing behind, however many there were: only the waiting process has files.
    const files = await readdir(join(dataDir, 'processes'));
    expect(new Set(files.map((file) => file.replace(/\..*/, ''))).size).toBe(1);
    // Before this she isn't allowed to write.
    await writeFile(join(dataDir, '.env'), 'PARLEY_DM_POLICY=open\n');
    process.kill(parley().pid, 'SIGUSR2');
    const isReloaded = async () =>
      (await readFile(join(dataDir, 'test.log'), 'utf8')).includes('settings.reloaded');
    await until(isReloaded, { what: 'the settings read anew' });
    model.script(() => ({ text: 'Hello.' }));
    telegram.userSends({ from: eve, text: 'Hi.' });
    door.open();
    await untilSaid(telegram, { chat: eve.id, text: 'Hello.' });
    await untilReady(parley().url);
    expect(await database.read('select outcome from inbox')).toEqual([{ outcome: 'answered' }]);
  },
);
