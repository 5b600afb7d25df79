import { setTimeout as pause } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { startPostgres } from '../../scripts/test-postgres.mjs';
import { launchChromium } from '../browser/chromium.ts';
import { runParley } from '../cli/run-parley.ts';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import { isLong } from '../support/long-run.ts';
import { crowdAtWork, forCrowd, gatherCrowd } from './crowd.ts';
import { databaseServer, makeDatabase } from './own-database.ts';
import { pageToken } from './page-state.ts';
import { startStage } from './stage.ts';
import { until } from './until.ts';

const config = { ...forCrowd, lanes: { leaseMs: 1000, renewMs: 300 } };
const people = 4;

type Ready = { readonly httpStatus: number; readonly missing: readonly string[] };

async function readiness(url: string): Promise<Ready> {
  const answer = await fetch(`${url}/readyz`);
  const { missing = [] } = (await answer.json()) as { missing?: readonly string[] };
  return { httpStatus: answer.status, missing };
}

/** Returns a figure of `/metrics`; undefined if it isn't shown. */
async function figure(url: string, name: string): Promise<number | undefined> {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${pageToken}` } });
  const line = (await answer.text()).split('\n').find((one) => one.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}

// Without PARLEY_TEST_DATABASE_URL there is no PostgreSQL on this machine.
describe.skipIf(databaseServer === undefined)('the loss of PostgreSQL', { concurrent: true }, () => {
  test('accepts nothing and says so while PostgreSQL is down under load, then answers everybody once', {
    timeout: 300_000,
  }, async ({ expect, onTestFinished }) => {
    const cluster = await startPostgres();
    onTestFinished(cluster.stop);
    const settings = { config, networks: ['web'], env: { DATABASE_URL: cluster.url } } as const;
    const { telegram, model, dataDir, parley } = await startStage(settings, onTestFinished);
    const { url, signInLink } = parley();
    const browser = await launchChromium();
    onTestFinished(() => browser.close());
    const page = await browser.newPage();
    await page.goto(signInLink);
    await page.locator('.dot.open').first().waitFor();
    const banner = page
      .getByRole('status', { name: 'Needs your attention' })
      .getByText("The database can't be used");
    expect(await banner.count()).toBe(0);

    const { crowd, gate } = await crowdAtWork({ telegram, model }, people);
    await cluster.crash();
    crowd.speaks();
    gate.open();
    const isAway = async () => (await readiness(url)).missing.includes('store');
    await until(isAway, { what: 'the lack on show' });
    expect((await readiness(url)).httpStatus).toBe(503);
    await banner.waitFor();
    expect(await figure(url, 'parley_store_up')).toBe(0);
    expect(await figure(url, 'parley_messages_accepted')).toBeUndefined();
    // Uses the address that the gateway has left in its folder, as it took any free port.
    const env = { PARLEY_DATA_DIR: dataDir, PARLEY_PORT: '0', PARLEY_TOKEN: pageToken };
    expect((await runParley(['status'], env)).stdout).toContain("! The database can't be used");
    // The length of the outage is the fault itself.
    await pause(3000);
    expect(crowd.answered()).toBe(0);
    // None of the messages sent meanwhile was acknowledged to the platform.
    expect(telegram.updates.pending).toHaveLength(people);

    await cluster.restart();
    const backAt = performance.now();
    await telegram.waitFor(() => crowd.answered() > 0);
    const firstAnswerMs = performance.now() - backAt;
    await telegram.waitFor(() => crowd.answered() === 2 * people);
    await until(async () => (await readiness(url)).httpStatus === 200, { what: 'readiness' });
    await banner.waitFor({ state: 'detached' });
    const isAtRest = async () =>
      (await figure(url, 'parley_messages_ended{outcome="answered",source="platform"}')) === 2 * people &&
      (await figure(url, 'parley_outbox_parts{state="sent"}')) === 2 * people;
    // A count that took long on a busy machine is served from the cache for a while.
    await until(isAtRest, { what: 'rest' });
    for (const state of ['held', 'waiting', 'taken', 'lost'])
      expect(await figure(url, `parley_messages_unaccounted{state="${state}",source="platform"}`)).toBe(0);
    expect(telegram.calls.filter(({ method }) => method === 'sendMessage')).toHaveLength(2 * people);
    // This figure was first read while the database was unreachable; deliveries since then are counted.
    const sent = 'parley_delivery_attempts_total{channel="telegram",result="sent"}';
    expect(await figure(url, sent)).toBe(2 * people);
    if (isLong) console.info(`first answer ${Math.round(firstAnswerMs)} ms after PostgreSQL was back`);
  });

  test('refuses nobody while PostgreSQL is read-only, as in a fail-over, and continues afterwards', {
    timeout: 300_000,
  }, async ({ expect, onTestFinished }) => {
    const database = await makeDatabase(onTestFinished);
    const settings = { config, env: { DATABASE_URL: database.url } };
    const { telegram, model, parley } = await startStage(settings, onTestFinished);
    const { url } = parley();
    const crowd = gatherCrowd(telegram, people);
    model.script((body) => ({ text: `You said: ${lastUserText(body)}` }));
    const name = new URL(database.url).pathname.slice(1);
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`;
    const takesWrites = async (setting: 'on' | 'off') => {
      // New connections from now on may only read, or may write again.
      const readOnly = setting === 'on' ? 'off' : 'on';
      await database.read(`begin; set transaction read write;
        alter database ${name} set default_transaction_read_only = ${readOnly}; commit`);
      await database.read(cut);
    };
    await takesWrites('off');
    crowd.speaks();
    await until(async () => (await readiness(url)).missing.includes('store'), { what: 'the lack on show' });
    await pause(2000);
    expect(telegram.updates.pending).toHaveLength(people);
    await takesWrites('on');
    await telegram.waitFor(() => crowd.answered() === people);
    await until(async () => (await readiness(url)).httpStatus === 200, { what: 'readiness' });
    expect(await database.read('select distinct outcome, reason from ledger')).toEqual([
      { outcome: 'accepted', reason: null },
    ]);
    expect(await figure(url, 'parley_messages_unaccounted{state="lost",source="platform"}')).toBe(0);
  });
});
