import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import BetterSqlite3 from 'better-sqlite3';
import { beforeAll, describe, test } from 'vitest';
import { createGate } from '../platforms/anthropic/gate.ts';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import { countEvents, countTold, findBreaches, untilAtRest } from './conservation.ts';
import { crowdAtWork, forCrowd, gatherCrowd } from './crowd.ts';
import { describeRow } from './describe-row.ts';
import { databaseServer, makeDatabase } from './own-database.ts';
import { canMount, mountSmallDisk, type SmallDisk } from './small-disk.ts';
import { type Stage, startStage } from './stage.ts';
import { ada, bob, said, telegramState, untilSaid } from './telegram-chat.ts';
import { until } from './until.ts';

const config = { lanes: { leaseMs: 1000, renewMs: 300 } };

async function untilLogged(dataDir: string, event: RegExp): Promise<void> {
  const isLogged = async () => event.test(await readFile(join(dataDir, 'test.log'), 'utf8'));
  await until(isLogged, { what: `${event} in the log` });
}

describe.concurrent('a gateway suspended for longer than its lease', () => {
  // Without PARLEY_TEST_DATABASE_URL there is no database that two hosts could share.
  test.skipIf(databaseServer === undefined)(
    'loses its runs and its account to another process while suspended, and writes and sends nothing afterwards',
    { timeout: 300_000 },
    async ({ expect, onTestFinished }) => {
      const database = await makeDatabase(onTestFinished);
      const env = { DATABASE_URL: database.url };
      const first = await startStage({ config, env }, onTestFinished);
      const { telegram, model } = first;
      const second = await startStage({ config, env, telegram, model }, onTestFinished);
      const held = createGate();
      model.script((body, count) => ({
        text: `You said: ${lastUserText(body)}`,
        ...(count === 1 && { hold: { gate: held } }),
      }));
      telegram.userSends({ from: ada, text: 'One.' });
      await held.reached;
      process.kill(first.parley().pid, 'SIGSTOP');
      await untilSaid(telegram, { chat: ada.id, text: 'You said: One.' });
      telegram.userSends({ from: bob, text: 'Two.' });
      await untilSaid(telegram, { chat: bob.id, text: 'You said: Two.' });
      expect((await telegramState(second.parley().url)).state).toBe('on');
      process.kill(first.parley().pid, 'SIGCONT');
      held.open();
      await untilLogged(first.dataDir, /"(run\.superseded|run\.ended)"/);
      telegram.userSends({ from: ada, text: 'Three.' });
      await untilSaid(telegram, { chat: ada.id, text: 'You said: Three.' });
      const isStandby = async () =>
        (await telegramState(first.parley().url)).detail.includes('another process');
      await until(isStandby, { what: 'the first gateway in standby' });

      expect(said(telegram, ada.id)).toEqual(['You said: One.', 'You said: Three.']);
      expect(said(telegram, bob.id)).toEqual(['You said: Two.']);
      expect(await database.read('select outcome from inbox order by "createdAt"')).toEqual(
        Array(3).fill({ outcome: 'answered' }),
      );
      expect(await database.read('select distinct state from outbox')).toEqual([{ state: 'sent' }]);
      const told = await database.read(`select parts from transcript where role = 'user'`);
      expect(told).toHaveLength(3);
    },
  );
});

describe.skipIf(databaseServer === undefined)('a gateway on PostgreSQL', { concurrent: true }, () => {
  test('answers everybody once although PostgreSQL keeps cutting its connections', {
    timeout: 300_000,
  }, async ({ expect, onTestFinished }) => {
    const database = await makeDatabase(onTestFinished);
    const settings = { config: { ...forCrowd, ...config }, env: { DATABASE_URL: database.url } };
    const { telegram, model } = await startStage(settings, onTestFinished);
    const crowd = gatherCrowd(telegram, 4);
    model.script((body) => ({ chunks: ['You said: ', lastUserText(body)], chunkDelayMs: 100 }));
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`;
    for (let times = 1; times <= 3; times++) {
      crowd.speaks();
      await model.waitForRequest((times - 1) * 4 + 1);
      await database.read(cut);
      await telegram.waitFor(() => crowd.answered() >= times * 4);
    }
    const open = `select id from inbox where state <> 'ended'
      union all select key from outbox where state in ('pending', 'sending')`;
    await until(async () => (await database.read(open)).length === 0, { what: 'the end of everything' });
    expect(await database.read('select outcome, count(*)::int as times from inbox group by outcome')).toEqual(
      [{ outcome: 'answered', times: 12 }],
    );
    expect(await database.read('select distinct state from outbox')).toEqual([{ state: 'sent' }]);
    expect(telegram.calls.filter(({ method }) => method === 'sendMessage')).toHaveLength(12);
  });
});

describeRow('a gateway on SQLite', (atEnd) => {
  let gateway: Stage;

  beforeAll(async () => {
    gateway = await startStage({ config: { ...forCrowd, ...config } }, atEnd);
  });

  test('answers once after it was suspended for longer than its lease', async ({ expect }) => {
    const { telegram, model, dataDir, parley } = gateway;
    const [before, asked] = [countEvents(dataDir), model.requests.length];
    const gate = createGate();
    model.script((body) => ({ text: `You said: ${lastUserText(body)}`, hold: { gate } }));
    telegram.userSends({ from: ada, text: 'One.' });
    telegram.userSends({ from: bob, text: 'Two.' });
    await model.waitForRequest(asked + 2);
    process.kill(parley().pid, 'SIGSTOP');
    // The length of the stop is the fault itself.
    await pause(2500);
    process.kill(parley().pid, 'SIGCONT');
    gate.open();
    await untilAtRest(dataDir, before + 2);
    expect([said(telegram, ada.id), said(telegram, bob.id)]).toEqual([
      ['You said: One.'],
      ['You said: Two.'],
    ]);
    expect(countTold(dataDir, ['One.', 'Two.'])).toEqual([1, 1]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('answers everybody once after another program locked the database for seven seconds', async ({
    expect,
  }) => {
    const { telegram, dataDir, parley } = gateway;
    const before = countEvents(dataDir);
    const { crowd, gate } = await crowdAtWork(gateway, 3);
    const intruder = new BetterSqlite3(join(dataDir, 'parley.db'), { timeout: 5000 });
    intruder.exec('BEGIN IMMEDIATE');
    gate.open();
    crowd.speaks();
    const since = performance.now();
    // It stays readable, but each write waits five seconds in vain.
    await until(async () => (await readiness(parley().url)).includes('store'), { what: 'the lack on show' });
    await pause(Math.max(0, 7000 - (performance.now() - since)));
    expect(crowd.answered()).toBe(0);
    expect(telegram.updates.pending).toHaveLength(3);
    intruder.close();
    await telegram.waitFor(() => crowd.answered() === 6);
    await untilAtRest(dataDir, before + 6);
    expect(await readiness(parley().url)).toContain('"ready"');
    expect(crowd.breaches(dataDir)).toEqual([]);
  });
});

// A separate disk requires the right to mount one, which an ordinary user doesn't have.
describeRow(
  'a gateway on a small disk',
  (atEnd) => {
    let disk: SmallDisk;
    let gateway: Stage;

    beforeAll(async () => {
      disk = await mountSmallDisk(400, atEnd);
      const settings = { config: { ...forCrowd, ...config }, dataDir: disk.dataDir };
      gateway = await startStage(settings, atEnd);
    });

    // This test comes first, while SQLite's log has no allocated space to write into.
    test('loses and doubles nothing when its disk is completely full', async ({ expect }) => {
      const { telegram, dataDir, parley } = gateway;
      const before = countEvents(dataDir);
      const { crowd, gate } = await crowdAtWork(gateway, 3, { name: 'Full', firstId: 1001 });
      await disk.fill();
      gate.open();
      crowd.speaks();
      await until(async () => (await telegramState(parley().url)).state === 'trouble', {
        what: 'the lack on show',
      });
      expect((await telegramState(parley().url)).detail).toMatch(/The disk that holds .* is full/);
      expect(crowd.answered()).toBe(0);
      expect(telegram.updates.pending).toHaveLength(3);
      await disk.free();
      await telegram.waitFor(() => crowd.answered() === 6);
      await untilAtRest(dataDir, before + 6);
      expect(crowd.breaches(dataDir)).toEqual([]);
    });

    test('reports less than 200 MB of disk space, accepts nothing, and finishes its runs', async ({
      expect,
    }) => {
      const { telegram, dataDir, parley } = gateway;
      const before = countEvents(dataDir);
      const { crowd, gate } = await crowdAtWork(gateway, 3, { name: 'Low', firstId: 2001 });
      await disk.fill(250);
      await until(async () => (await readiness(parley().url)).includes('disk space'), {
        what: 'the lack on show',
      });
      crowd.speaks();
      gate.open();
      await telegram.waitFor(() => crowd.answered() === 3);
      expect(telegram.updates.pending).toHaveLength(3);
      await disk.free();
      await telegram.waitFor(() => crowd.answered() === 6);
      await untilAtRest(dataDir, before + 6);
      expect(await readiness(parley().url)).toContain('"ready"');
      expect(crowd.breaches(dataDir)).toEqual([]);
    });
  },
  { isSkipped: !canMount() },
);

/** Returns the text of `/readyz`. */
async function readiness(url: string): Promise<string> {
  return (await fetch(`${url}/readyz`)).text();
}
