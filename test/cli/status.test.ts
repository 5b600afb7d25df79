import { rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { reloadSignal } from '../../src/cli/reload.ts';
import { aServer } from '../server/a-server.ts';
import { lazyStore } from '../support/lazy-store.ts';
import { aFolder } from '../support/own-folder.ts';
import { scriptedStore } from '../support/scripted-store.ts';
import { publishAddress } from './publish-address.ts';
import { runParley } from './run-parley.ts';

const token = 'q7Zr2mXk9vTb4NwLs8Jd1HfG';

/** Listens where a gateway could, and records what it is sent. */
async function anotherProgram(answer: string) {
  const tokens: (string | undefined)[] = [];
  const server = createServer(({ headers }, response) => {
    tokens.push(headers.authorization);
    response.end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port: String(port), tokens };
}

const status = (dataDir: string, port = '0') =>
  runParley(['status'], { PARLEY_DATA_DIR: dataDir, PARLEY_PORT: port, PARLEY_TOKEN: token });

it('says how to start Parley if nothing runs on the folder', async () => {
  const folder = aFolder();
  expect(await status(folder)).toMatchObject({
    code: 1,
    stderr: `Parley isn't running on ${folder}. Start it: npm start\n`,
  });
});

it.each(['a page of something else', '{"version":1}', ''])(
  "sends no token to another program on its port or at a dead gateway's address: %j",
  async (answer) => {
    const folder = aFolder();
    const { url, port, tokens } = await anotherProgram(answer);
    // After a kill, a process's lock is free, but its address is still there.
    (await publishAddress(folder, { url }))();
    const { code, stderr } = await status(folder, port);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `${url} responds (HTTP 200), but it isn't the gateway of ${folder}. Set PARLEY_DATA_DIR to the folder it was started with.\n`,
    });
    expect(tokens).toEqual([undefined]);
  },
);

it("says why a gateway isn't ready and names one that does not answer", async () => {
  const folder = aFolder();
  const reason = `Parley can't start yet: The data folder ${folder} is on a disk that is full.`;
  const { server, port } = await aServer({
    token,
    readiness: async () => ({
      missing: ['data folder'],
      components: [{ name: 'data folder', state: 'down', reason }],
    }),
  });
  onTestFinished(() => server.close());
  // A lock file that can't be locked, as in a folder owned by another user.
  await writeFile(join(folder, 'processes'), '');
  expect((await status(folder, String(port))).stderr).toBe(`${reason}\n`);
  await rm(join(folder, 'processes'));

  const { url, tokens } = await anotherProgram('{}');
  const withdraw = await publishAddress(folder, { url });
  onTestFinished(withdraw);
  expect((await status(folder)).stderr).toContain(`(process ${process.pid}) doesn't answer`);
  expect(tokens).toEqual([`Bearer ${token}`]);
});

it('shows workers if no gateway runs, and says so to commands that need one', async () => {
  const folder = aFolder();
  const { server, url } = await aServer();
  onTestFinished(server.close);
  onTestFinished(await publishAddress(folder, { url, role: 'worker' }));
  expect(await status(folder)).toMatchObject({
    code: 0,
    stdout: `No gateway is running on ${folder}, only workers.\nworker ${process.pid} at ${url}: ready\n`,
  });
  const env = { PARLEY_DATA_DIR: folder, PARLEY_PORT: '0' };
  expect((await runParley(['signin'], env)).stderr).toBe(
    `Only workers run on ${folder}. Run this where the gateway runs, or start one: ./bin/parley.mjs start --role gateway\n`,
  );
});

it('reloads workers if no gateway runs', async () => {
  const folder = aFolder();
  onTestFinished(await publishAddress(folder, { url: 'http://127.0.0.1:1', role: 'worker' }));
  const told = new Promise<void>((resolve) => process.once(reloadSignal, () => resolve()));
  const env = { PARLEY_DATA_DIR: folder, PARLEY_PORT: '0' };
  expect(await runParley(['reload'], env)).toMatchObject({
    code: 0,
    stdout: `Told worker ${process.pid} to reload; its log shows what it applied.\n`,
  });
  await told;
});

it('shows runs and waiting messages even if the configuration file is broken', async () => {
  const folder = aFolder();
  const lane = {
    key: 'main:bot:test:dm:ann',
    class: 'main',
    agentId: 'main',
    mode: 'steer',
    waiting: [],
    title: undefined,
  };
  const run = { id: 'run-1', kind: 'turn', ageMs: 12_000, isStopping: false };
  const lanes = [
    { ...lane, title: 'Green boats', state: 'active', run, waitingCount: 2 },
    { ...lane, key: 'main:bot:test:dm:bea', state: 'due', waitingCount: 1 },
    { ...lane, key: 'main:bot:test:dm:cy', state: 'idle', waitingCount: 0 },
  ];
  const store = scriptedStore(lazyStore(), { readLiveLanes: () => ({ lanes }) });
  const { server, url } = await aServer({ token, store });
  onTestFinished(server.close);
  onTestFinished(await publishAddress(folder, { url }));
  const file = join(folder, 'broken.json');
  await writeFile(file, '{\n  "model": "demo"\n  "agents": [\n');
  const env = { PARLEY_DATA_DIR: folder, PARLEY_CONFIG: file, PARLEY_PORT: '0', PARLEY_TOKEN: token };
  const { code, stdout, stderr } = await runParley(['status'], env);
  expect(code).toBe(0);
  expect(stdout).toContain('  runs: 1, waiting messages: 3\n');
  expect(stdout).toContain('    “Green boats”: run run-1 for 12 s, waiting messages: 2\n');
  expect(stdout).toContain('    main:bot:test:dm:bea: due, waiting messages: 1\n');
  expect(stderr).toContain("broken.json: isn't valid JSON at line 3");
  expect(JSON.parse((await runParley(['status', '--json'], env)).stdout).lanes).toHaveLength(2);

  const doctor = await runParley(['doctor'], env);
  expect(doctor.code).toBe(1);
  expect(doctor.stdout).toContain("isn't valid JSON at line 3");
  expect(doctor.stdout).toContain(`gateway ${process.pid}`);
});

it('finds the data folder named in a broken configuration file', async () => {
  const folder = aFolder();
  const file = join(folder, 'broken.json');
  await writeFile(file, `{\n  "dataDir": "elsewhere",\n  "port": 1,\n  "model": demo }`);
  for (const command of ['status', 'sessions list', 'pair list', 'queue list', 'outbox list', 'why x']) {
    const { code, stderr } = await runParley(command.split(' '), { PARLEY_CONFIG: file });
    expect([command, code]).toEqual([command, 1]);
    expect(stderr).toContain("isn't valid JSON at line 4");
    expect(stderr).toContain(join(folder, 'elsewhere'));
  }
  const changes = await runParley(['pair', 'approve', 'ABCD2345'], { PARLEY_CONFIG: file });
  expect(changes.stderr).not.toContain('elsewhere');
});
