import { onTestFinished, test } from 'vitest';
import { readProcessAddresses } from '../../src/processes/process-address.ts';
import { runParley } from '../cli/run-parley.ts';
import { listenersOf } from '../threats/open-ports.ts';
import { channelShown, pageToken } from './page-state.ts';
import { openStage } from './stage.ts';
import { bob, untilSaid } from './telegram-chat.ts';
import { until } from './until.ts';

const bearer = { authorization: `Bearer ${pageToken}` };

async function ready(url: string) {
  const answer = await fetch(`${url}/readyz?verbose`);
  const body = (await answer.json()) as {
    status: string;
    missing?: readonly string[];
    components: readonly {
      name: string;
      state: string;
      reason?: string;
      since?: string;
      nextTryAt?: string;
    }[];
  };
  return { code: answer.status, ...body };
}

test('reports for each process whether it is live and ready, and what is down', { timeout: 300_000 }, async ({
  expect,
}) => {
  const { telegram, dataDir, start } = await openStage({}, onTestFinished);
  const gateway = await start({ role: 'gateway' });
  // No worker is running yet: people are notified, and so is the operator.
  telegram.userSends({ from: bob, text: 'Anybody there?' });
  await untilSaid(telegram, { chat: bob.id, text: /nobody can answer yet: no worker is running/ });
  const alone = await runParley(['doctor'], { PARLEY_DATA_DIR: dataDir, PARLEY_PORT: '0' });
  expect(alone.stdout).toMatch(/FAILED +worker +a gateway is running but no worker.*\n.*start --role worker/);
  const workers = await Promise.all([start({ role: 'worker' }), start({ role: 'worker' })]);
  await untilSaid(telegram, { chat: bob.id, text: 'You said: Anybody there?' });
  const addresses = await readProcessAddresses(dataDir);
  const urlOf = (pid: number) => addresses.find((one) => one.pid === pid)?.url ?? '';
  const workerUrls = workers.map(({ pid }) => urlOf(pid));
  expect(urlOf(gateway.pid)).toBe(gateway.url);
  expect(new Set([gateway.url, ...workerUrls]).size).toBe(3);
  // Threat 15: each can be reached there from this machine and from nowhere else; their Redis has no port.
  for (const { pid } of [gateway, ...workers])
    expect(listenersOf(pid).map((address) => `http://${address}`)).toEqual([urlOf(pid)]);

  for (const url of [gateway.url, ...workerUrls]) {
    expect((await fetch(`${url}/healthz`)).status, url).toBe(200);
    expect(await ready(url), url).toMatchObject({ code: 200, status: 'ready' });
    expect((await fetch(`${url}/metrics`)).status, url).toBe(401);
    const metrics = await fetch(`${url}/metrics`, { headers: bearer });
    expect(await metrics.text(), url).toMatch(/^parley_store_up 1$/m);
  }

  const status = (...flags: string[]) =>
    runParley(['status', ...flags], { PARLEY_DATA_DIR: dataDir, PARLEY_TOKEN: pageToken, PARLEY_PORT: '0' });
  const table = (await status()).stdout;
  for (const [index, { pid }] of workers.entries())
    expect(table).toContain(`worker ${pid} at ${workerUrls[index]}: ready`);

  telegram.revokeToken();
  const telegramNow = async () =>
    (await ready(gateway.url)).components.find(({ name }) => name === 'telegram');
  await until(async () => (await telegramNow())?.nextTryAt !== undefined, { what: 'a slow retry' });
  const { code, missing, components } = await ready(gateway.url);
  expect(code).toBe(503);
  expect(missing).toEqual(['telegram']);
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
  const down = { name: 'telegram', state: 'down', reason: expect.stringMatching(/./), since: time };
  expect(components).toContainEqual({ ...down, nextTryAt: time });
  expect(components).toContainEqual({ name: 'store', state: 'ok' });
  expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
  const { since, nextTryAt, reason } = components.find(({ name }) => name === 'telegram') ?? {};
  expect(await channelShown(gateway.url, 'telegram')).toMatchObject({
    state: 'trouble',
    detail: reason,
    since: Date.parse(since ?? ''),
    nextTryAt: Date.parse(nextTryAt ?? ''),
  });
  expect((await status()).stdout).toMatch(
    /telegram {3}trouble \(Unauthorized\), since [-\d]{10} \d\d:\d\d, next try [-\d]{10} \d\d:\d\d/,
  );
  const doctor = await runParley(['doctor', '--json'], { PARLEY_DATA_DIR: dataDir, PARLEY_PORT: '0' });
  expect(JSON.parse(doctor.stdout).checks).toContainEqual(
    expect.objectContaining({
      name: `gateway ${gateway.pid}`,
      result: 'failed',
      detail: expect.stringMatching(/telegram is down since [-\d]{10} \d\d:\d\d/),
    }),
  );
});
