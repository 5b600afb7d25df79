import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { createGate } from '../platforms/anthropic/gate.ts';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import { countTold, findBreaches, readStore, untilAtRest } from './conservation.ts';
import { databaseServer, makeDatabase } from './own-database.ts';
import type { ParleyProcess } from './parley-process.ts';
import { webClient } from './person.ts';
import { type Fleet, type FleetSettings, startFleet } from './role-fleet.ts';
import { ada, said, untilSaid } from './telegram-gateway.ts';
import { until } from './until.ts';

type AtEnd = (end: () => Promise<void>) => void;

/** The process that works a lane now. */
function workerOf(dataDir: string, workers: readonly ParleyProcess[]): ParleyProcess | undefined {
  const [row] = readStore(dataDir, 'select holder from lanes where runId is not null');
  const holder = String(row?.holder ?? '');
  return workers.find(({ pid }) => holder.includes(`/${pid}-`));
}

async function untilWorked(dataDir: string, workers: readonly ParleyProcess[]): Promise<ParleyProcess> {
  await until(() => workerOf(dataDir, workers) !== undefined, { what: 'a worker has the lane' });
  const worker = workerOf(dataDir, workers);
  if (!worker) throw new Error('the lane was let go');
  return worker;
}

/** Tells what a promise of the README was measured to take. */
function report(what: string, sinceMs: number): void {
  process.stdout.write(`measured: ${what}: ${Math.round(performance.now() - sinceMs)} ms\n`);
}

/** A gateway and two workers on one folder that is new, all of them started at once. */
async function startThree(settings: FleetSettings, atEnd: AtEnd) {
  const fleet = await startFleet(settings, atEnd);
  const [gateway, ...workers] = await Promise.all([
    fleet.start('gateway'),
    fleet.start('worker'),
    fleet.start('worker'),
  ]);
  return { ...fleet, gateway, workers };
}

/** Answers `After <what was said last>.` when the gate opens. */
function answerBehind({ model }: Pick<Fleet, 'model'>) {
  const gate = createGate();
  model.script((body) => ({ text: `After ${lastUserText(body)}.`, hold: { gate } }));
  return gate;
}

describe.concurrent('a gateway and workers on one folder', () => {
  test('all start at once on a new folder, and answer in order, each by a worker', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, dataDir, gateway, workers } = await startThree({}, onTestFinished);
    const words = ['one', 'two', 'three', 'four'];
    for (const word of words) {
      telegram.userSends({ from: ada, text: word });
      await untilSaid(telegram, { chat: ada.id, text: `You said: ${word}` });
    }
    await untilAtRest(dataDir, words.length);
    expect(said(telegram, ada.id)).toEqual(words.map((word) => `You said: ${word}`));
    const boots = readStore(dataDir, 'select id, role from boots');
    expect(boots.map(({ role }) => role).sort()).toEqual(['gateway', 'worker', 'worker']);
    expect([gateway, ...workers].map(({ url }) => url !== '')).toEqual([true, false, false]);
    expect(countTold(dataDir, words)).toEqual([1, 1, 1, 1]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('take in what is said while a worker works, and stop it at once', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir } = await startThree({}, onTestFinished);
    const [gate, never] = [createGate(), createGate()];
    const call = { name: 'session_status', input: {} };
    model.script((body, count) => {
      if (count === 1) return { toolCalls: [call], hold: { gate } };
      const text = lastUserText(body);
      return text === 'Wait.' ? { text: 'Never.', hold: { gate: never } } : { text: `At last: ${text}` };
    });
    telegram.userSends({ from: ada, text: 'Begin.' });
    await model.waitForRequest(1);
    telegram.userSends({ from: ada, text: 'And this.' });
    await until(() => readStore(dataDir, 'select id from inbox').length === 2, {
      what: 'the second is stored',
    });
    gate.open();
    await untilSaid(telegram, { chat: ada.id, text: 'At last: And this.' });
    telegram.userSends({ from: ada, text: 'Wait.' });
    await model.waitForRequest(3);
    const since = performance.now();
    telegram.userSends({ from: ada, text: '/stop' });
    const stopped = `select id from runs where endReason = 'stop'`;
    await until(() => readStore(dataDir, stopped).length === 1, { what: 'the run is stopped' });
    report('/stop, from the person to the end of a run in another process', since);
    await untilAtRest(dataDir, 4);
    expect(readStore(dataDir, 'select count(*) as runs from runs')).toEqual([{ runs: 2 }]);
    expect(said(telegram, ada.id)).not.toContain('Never.');
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('show on the page how far a worker is', async ({ expect, onTestFinished }) => {
    const config = { channels: { telegram: { enabled: false }, terminal: { enabled: false } } };
    const { model, gateway, dataDir } = await startThree({ config }, onTestFinished);
    const gate = createGate();
    model.script([{ chunks: ['The sky ', 'is blue ', 'today.'], hold: { gate, afterChunks: 2 } }]);
    const client = webClient(() => gateway);
    onTestFinished(() => client.close());
    client.say('What colour is the sky?');
    const drafts = () => client.frames.flatMap((frame) => (frame.type === 'preview' ? [frame.text] : []));
    await until(() => drafts().includes('The sky is blue'), { what: 'the draft is shown' });
    gate.open();
    await until(() => client.standing.some(({ text }) => text === 'The sky is blue today.'), {
      what: 'the answer is shown',
    });
    await untilAtRest(dataDir, 1);
    expect(client.standing.map(({ text }) => text)).toEqual(['The sky is blue today.']);
    expect(findBreaches(dataDir)).toEqual([]);
  });
});

describe.concurrent('of a gateway and workers on one folder', () => {
  test('a worker is killed, and another goes on with its run', async ({ expect, onTestFinished }) => {
    const fleet = await startThree({}, onTestFinished);
    const { telegram, model, dataDir, workers } = fleet;
    const gate = answerBehind(fleet);
    telegram.userSends({ from: ada, text: 'Begin' });
    await model.waitForRequest(1);
    const worker = await untilWorked(dataDir, workers);
    const since = performance.now();
    await worker.kill();
    await model.waitForRequest(2);
    report('kill -9 of a worker, until another one of its folder goes on with the run', since);
    gate.open();
    await untilSaid(telegram, { chat: ada.id, text: 'After Begin.' });
    await untilAtRest(dataDir, 1);
    expect(said(telegram, ada.id)).toEqual(['After Begin.']);
    expect(readStore(dataDir, 'select attempts from runs')).toEqual([{ attempts: 2 }]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('a worker is told to stop, and another goes on with its run', async ({ expect, onTestFinished }) => {
    const fleet = await startThree({}, onTestFinished);
    const { telegram, model, dataDir, workers } = fleet;
    const gate = answerBehind(fleet);
    telegram.userSends({ from: ada, text: 'Begin' });
    await model.waitForRequest(1);
    const worker = await untilWorked(dataDir, workers);
    const since = performance.now();
    const stopped = worker.stop();
    await model.waitForRequest(2);
    report('SIGTERM to a worker, until another one goes on with the run', since);
    await stopped;
    gate.open();
    await untilSaid(telegram, { chat: ada.id, text: 'After Begin.' });
    await untilAtRest(dataDir, 1);
    expect(said(telegram, ada.id)).toEqual(['After Begin.']);
    expect(readStore(dataDir, 'select attempts, state from runs')).toEqual([
      { attempts: 1, state: 'finished' },
    ]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('a worker is told to stop in a tool, which it finishes first', async ({ expect, onTestFinished }) => {
    const folder = await mkdtemp(join(tmpdir(), 'parley-slow-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
    const [EFFECTS_FILE, GO_FILE] = [join(folder, 'effects'), join(folder, 'go')];
    const env = { TEST_PLUGIN: join(import.meta.dirname, 'slow-tool.ts'), EFFECTS_FILE, GO_FILE };
    const { telegram, model, dataDir, workers } = await startThree({ env }, onTestFinished);
    model.script([{ toolCalls: [{ name: 'slow', input: {} }] }, { text: 'Now it is done.' }]);
    telegram.userSends({ from: ada, text: 'Begin' });
    await until(() => existsSync(EFFECTS_FILE), { what: 'the tool works' });
    const worker = await untilWorked(dataDir, workers);
    const stopped = worker.stop();
    writeFileSync(GO_FILE, '');
    await untilSaid(telegram, { chat: ada.id, text: 'Now it is done.' });
    await stopped;
    expect(readFileSync(EFFECTS_FILE, 'utf8').trim().split('\n')).toHaveLength(1);
    const [run] = readStore(dataDir, `select attempts from runs where laneKey like '%${ada.id}'`);
    expect(run).toEqual({ attempts: 1 });
  });

  test('the one that owns Redis is killed, and another starts it again', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, dataDir, start } = await startFleet({}, onTestFinished);
    const owner = await start('worker');
    await Promise.all([start('gateway'), start('worker')]);
    telegram.userSends({ from: ada, text: 'one' });
    await untilSaid(telegram, { chat: ada.id, text: 'You said: one' });
    await untilAtRest(dataDir, 1);
    const since = performance.now();
    await owner.kill();
    const log = () => readFileSync(join(dataDir, 'test.log'), 'utf8');
    await until(() => /redis\.owner-lost[\s\S]*redis\.restarted/.test(log()), {
      what: 'Redis is there again',
    });
    report('kill -9 of the owner of Redis, until Redis is there again', since);
    telegram.userSends({ from: ada, text: 'two' });
    await untilSaid(telegram, { chat: ada.id, text: 'You said: two' });
    await untilAtRest(dataDir, 2);
    expect(said(telegram, ada.id)).toEqual(['You said: one', 'You said: two']);
    expect(findBreaches(dataDir)).toEqual([]);
  });
});

describe.concurrent('a data folder', () => {
  test('is refused to a process that wants it alone, naming those who have it, until they have ended', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, dataDir, start } = await startFleet({}, onTestFinished);
    const gateway = await start('gateway');
    const worker = await start('worker');
    const refusal = await start('all').then(() => '', String);
    expect(refusal).toContain('data_folder_locked');
    for (const { pid } of [gateway, worker]) expect(refusal).toContain(String(pid));
    await Promise.all([gateway.kill(), worker.stop()]);
    await start('all');
    telegram.userSends({ from: ada, text: 'one' });
    await untilSaid(telegram, { chat: ada.id, text: 'You said: one' });
    expect(readStore(dataDir, 'select role from boots')).toEqual([{ role: 'all' }]);
  });

  test('that one process has alone is refused to every other', async ({ expect, onTestFinished }) => {
    const { start } = await startFleet({}, onTestFinished);
    const { pid } = await start('all');
    for (const role of ['all', 'gateway', 'worker'] as const) {
      const refusal = await start(role).then(() => '', String);
      expect(refusal).toMatch(new RegExp(`in use by process ${pid}\\b`));
    }
  });
});

describe.skipIf(databaseServer === undefined)('on one PostgreSQL, in folders of their own', () => {
  test('several may begin at once on a new database', async ({ expect, onTestFinished }) => {
    const { url, read } = await makeDatabase(onTestFinished);
    const { telegram, start } = await startFleet({ env: { DATABASE_URL: url } }, onTestFinished);
    const begin = (role: 'gateway' | 'worker', folder: string) => start(role, { folder });
    await Promise.all([begin('gateway', 'one'), begin('worker', 'two'), begin('worker', 'three')]);
    telegram.userSends({ from: ada, text: 'one' });
    await untilSaid(telegram, { chat: ada.id, text: 'You said: one' });
    expect(await read('select id from boots')).toHaveLength(3);
  });

  test('a gateway is killed, and the other receives', async ({ expect, onTestFinished }) => {
    const { url, read } = await makeDatabase(onTestFinished);
    const { telegram, start } = await startFleet({ env: { DATABASE_URL: url } }, onTestFinished);
    const first = await start('gateway', { folder: 'one' });
    await start('gateway', { folder: 'two' });
    await start('worker', { folder: 'three' });
    telegram.userSends({ from: ada, text: 'one' });
    await untilSaid(telegram, { chat: ada.id, text: 'You said: one' });
    const since = performance.now();
    await first.kill();
    telegram.userSends({ from: ada, text: 'two' });
    const stored = async () => (await read('select id from inbox')).length === 2;
    await until(stored, { what: 'the other gateway receives' });
    report('kill -9 of a gateway, until one of another folder has received', since);
    await untilSaid(telegram, { chat: ada.id, text: 'You said: two' });
    expect(said(telegram, ada.id)).toEqual(['You said: one', 'You said: two']);
  });

  test('a gateway is told to stop, and the other takes its account over at once', async ({
    expect,
    onTestFinished,
  }) => {
    const { url, read } = await makeDatabase(onTestFinished);
    const { telegram, start } = await startFleet({ env: { DATABASE_URL: url } }, onTestFinished);
    const first = await start('gateway', { folder: 'one' });
    await start('gateway', { folder: 'two' });
    const holders = () => read('select holder from accounts where holder is not null');
    const before = await holders();
    const since = performance.now();
    await first.stop();
    await until(async () => (await holders()).some(({ holder }) => holder !== before[0]?.holder), {
      what: 'the other holds the account',
    });
    report('SIGTERM to a gateway, until one of another folder holds the account', since);
    telegram.userSends({ from: ada, text: 'one' });
    await until(async () => (await read('select id from inbox')).length === 1, { what: 'it is received' });
    expect(before).toHaveLength(1);
  });

  test('a worker is killed, and that of another folder goes on when its lease has ended', async ({
    expect,
    onTestFinished,
  }) => {
    const { url, read } = await makeDatabase(onTestFinished);
    const fleet = await startFleet({ env: { DATABASE_URL: url } }, onTestFinished);
    const { telegram, model, start } = fleet;
    await start('gateway', { folder: 'one' });
    const worker = await start('worker', { folder: 'two' });
    const gate = answerBehind(fleet);
    telegram.userSends({ from: ada, text: 'Begin' });
    await model.waitForRequest(1);
    await start('worker', { folder: 'three' });
    const since = performance.now();
    await worker.kill();
    await model.waitForRequest(2);
    report('kill -9 of a worker, until one of another folder goes on with the run', since);
    gate.open();
    await untilSaid(telegram, { chat: ada.id, text: 'After Begin.' });
    expect(said(telegram, ada.id)).toEqual(['After Begin.']);
    await until(async () => (await read(`select id from runs where state <> 'finished'`)).length === 0, {
      what: 'the run ends',
    });
    expect(await read('select attempts from runs')).toEqual([{ attempts: 2 }]);
  });
});
