import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, test } from 'vitest';
import { createGate } from '../platforms/anthropic/gate.ts';
import { repeatAfterMe } from '../platforms/anthropic/server.ts';
import { endsInResult, lastUserText } from '../platforms/anthropic/wire.ts';
import type { TgUser } from '../platforms/telegram/types.ts';
import { isLong } from '../support/long-run.ts';
import { aFolder } from '../support/own-folder.ts';
import { countEvents, countTold, findBreaches, readStore, untilAtRest } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { databaseServer, makeDatabase, type OwnDatabase } from './own-database.ts';
import { loadable, type ParleyProcess } from './parley-process.ts';
import { webClient } from './person.ts';
import { type AtEnd, openStage, type Stage, type StageSettings } from './stage.ts';
import { ada, bob, said, untilSaid } from './telegram-chat.ts';
import { until } from './until.ts';

type Held = Readonly<Record<string, unknown>>;

const somebody = (id: number): TgUser => ({ id, is_bot: false, first_name: `Person ${id}` });

/** Waits until a lane is claimed, and returns by whom. `holders`: reads who holds one now. */
async function untilWorked(
  workers: readonly ParleyProcess[],
  holders: () => readonly Held[] | Promise<readonly Held[]>,
): Promise<ParleyProcess> {
  let worker: ParleyProcess | undefined;
  const look = async () => {
    const [row] = await holders();
    worker = workers.find(({ pid }) => String(row?.holder).includes(`/${pid}-`));
    return worker !== undefined;
  };
  await until(look, { what: 'a worker has the lane' });
  if (!worker) throw new Error('the lane was let go');
  return worker;
}

/** The default's length is measured in the long run, and by `npm run bench -- recovery`. */
const lanes = isLong ? {} : { leaseMs: 2000, renewMs: 500 };

/** Prints the measured time for a promise of the README. */
function report(what: string, sinceMs: number): void {
  process.stdout.write(`measured: ${what}: ${Math.round(performance.now() - sinceMs)} ms\n`);
}

/** A gateway and two workers on one new folder, all started at the same time. */
async function startThree(settings: StageSettings, atEnd: AtEnd) {
  const stage = await openStage(settings, atEnd);
  const [gateway, ...workers] = await Promise.all([
    stage.start({ role: 'gateway' }),
    stage.start({ role: 'worker' }),
    stage.start({ role: 'worker' }),
  ]);
  return { ...stage, gateway, workers };
}

/** Answers `After <what was said last>.` when the gate opens. */
function answerBehind({ model }: Pick<Stage, 'model'>) {
  const gate = createGate();
  model.script((body) => ({ text: `After ${lastUserText(body)}.`, hold: { gate } }));
  return gate;
}

describeRow('a gateway and workers on one folder', (atEnd) => {
  let stage: Awaited<ReturnType<typeof startThree>>;
  let workers: readonly ParleyProcess[];
  let [effectsFile, goFile] = ['', ''];
  const rowsOf = (id: number, sql: string) => readStore(stage.dataDir, `${sql} like ?`, `%:${id}`);
  const workerOf = (id: number) =>
    untilWorked(workers, () => rowsOf(id, 'select holder from lanes where runId is not null and key'));

  beforeAll(async () => {
    const folder = aFolder(atEnd);
    [effectsFile, goFile] = [join(folder, 'effects'), join(folder, 'go')];
    const env = { TEST_PLUGIN: loadable('slow-tool'), EFFECTS_FILE: effectsFile, GO_FILE: goFile };
    // No call is given up for a message that arrives before its first word.
    const config = { run: { steerRestart: { dm: 'never' } } };
    stage = await startThree({ env, config, networks: ['web'] }, atEnd);
    workers = stage.workers;
  });
  afterEach(() => stage.model.script(repeatAfterMe));

  test('starts all processes at once on a new folder, and workers answer in order', async ({ expect }) => {
    const { telegram, dataDir, gateway } = stage;
    const boots = readStore(dataDir, 'select id, role from boots');
    expect(boots.map(({ role }) => role).sort()).toEqual(['gateway', 'worker', 'worker']);
    const words = ['one', 'two', 'three', 'four'];
    for (const word of words) {
      telegram.userSends({ from: ada, text: word });
      await untilSaid(telegram, { chat: ada.id, text: `You said: ${word}` });
    }
    await untilAtRest(dataDir, words.length);
    expect(said(telegram, ada.id)).toEqual(words.map((word) => `You said: ${word}`));
    expect([gateway, ...workers].map(({ url }) => url !== '')).toEqual([true, false, false]);
    expect(countTold(dataDir, words)).toEqual([1, 1, 1, 1]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('accepts messages while a worker is busy, and stops it at once', async ({ expect }) => {
    const { telegram, model, dataDir } = stage;
    const [before, asked, from] = [countEvents(stage.dataDir), model.requests.length, somebody(502)];
    const [gate, never] = [createGate(), createGate()];
    const call = { name: 'session_status', input: {} };
    model.script((body, count) => {
      if (count === 1) return { toolCalls: [call], hold: { gate } };
      const text = lastUserText(body);
      return text === 'Wait.' ? { text: 'Never.', hold: { gate: never } } : { text: `At last: ${text}` };
    });
    telegram.userSends({ from, text: 'Begin.' });
    await model.waitForRequest(asked + 1);
    telegram.userSends({ from, text: 'And this.' });
    await until(() => rowsOf(from.id, 'select id from inbox where laneKey').length === 2, {
      what: 'the second is stored',
    });
    gate.open();
    await untilSaid(telegram, { chat: from.id, text: 'At last: And this.' });
    telegram.userSends({ from, text: 'Wait.' });
    await model.waitForRequest(asked + 3);
    const since = performance.now();
    telegram.userSends({ from, text: '/stop' });
    const stopped = `select id from runs where endReason = 'stop' and laneKey`;
    await until(() => rowsOf(from.id, stopped).length === 1, { what: 'the run is stopped' });
    report('/stop, from the person to the end of a run in another process', since);
    await untilAtRest(dataDir, before + 4);
    expect(rowsOf(from.id, 'select id from runs where laneKey')).toHaveLength(2);
    expect(said(telegram, from.id)).not.toContain('Never.');
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test("shows a worker's progress on the page", async ({ expect, onTestFinished }) => {
    const { model, gateway, dataDir } = stage;
    const before = countEvents(stage.dataDir);
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
    await untilAtRest(dataDir, before + 1);
    expect(client.standing.map(({ text }) => text)).toEqual(['The sky is blue today.']);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  const endings = [
    {
      how: 'killed',
      id: 504,
      end: (worker: ParleyProcess) => worker.kill(),
      attempts: 2,
      measured: 'kill -9 of a worker, until another one of its folder goes on with the run',
    },
    {
      how: 'told to stop',
      id: 505,
      end: (worker: ParleyProcess) => worker.stop(),
      attempts: 1,
      measured: 'SIGTERM to a worker, until another one goes on with the run',
    },
  ];
  for (const { how, id, end, attempts, measured } of endings)
    test(`continues the run of a worker that is ${how}`, async ({ expect }) => {
      const { telegram, model, dataDir } = stage;
      const [before, asked] = [countEvents(stage.dataDir), model.requests.length];
      const gate = answerBehind(stage);
      telegram.userSends({ from: somebody(id), text: 'Begin' });
      await model.waitForRequest(asked + 1);
      const worker = await workerOf(id);
      const since = performance.now();
      const ended = end(worker);
      await model.waitForRequest(asked + 2);
      report(measured, since);
      await ended;
      gate.open();
      await untilSaid(telegram, { chat: id, text: 'After Begin.' });
      await untilAtRest(dataDir, before + 1);
      expect(said(telegram, id)).toEqual(['After Begin.']);
      expect(rowsOf(id, 'select attempts, state from runs where laneKey')).toEqual([
        { attempts, state: 'finished' },
      ]);
      expect(findBreaches(dataDir)).toEqual([]);
      workers = [...workers.filter((one) => one !== worker), await stage.start({ role: 'worker' })];
    });

  test('lets a worker finish its tool before it stops', async ({ expect }) => {
    const { telegram, model } = stage;
    const from = somebody(506);
    // Scripted by the request's content, because the other worker repeats a call that the stop cuts off.
    const call = { name: 'slow', input: {} };
    model.script((body) => (endsInResult(body) ? { text: 'Now it is done.' } : { toolCalls: [call] }));
    telegram.userSends({ from, text: 'Begin' });
    await until(() => existsSync(effectsFile), { what: 'the tool works' });
    const worker = await workerOf(from.id);
    const stopped = worker.stop();
    writeFileSync(goFile, '');
    await untilSaid(telegram, { chat: from.id, text: 'Now it is done.' });
    await stopped;
    expect(readFileSync(effectsFile, 'utf8').trim().split('\n')).toHaveLength(1);
    expect(rowsOf(from.id, 'select attempts from runs where laneKey')).toEqual([{ attempts: 1 }]);
  });
});

describeRow('a data folder with several processes', (atEnd) => {
  let stage: Stage;
  let gateway: ParleyProcess;
  let workers: readonly ParleyProcess[];

  beforeAll(async () => {
    stage = await openStage({}, atEnd);
    const { start } = stage;
    const owner = await start({ role: 'worker' });
    const [entrance, second] = await Promise.all([start({ role: 'gateway' }), start({ role: 'worker' })]);
    gateway = entrance;
    workers = [owner, second];
  });

  test('restarts Redis in another process when the one that ran it is killed', async ({ expect }) => {
    const { telegram, dataDir } = stage;
    const [owner, ...others] = workers;
    telegram.userSends({ from: ada, text: 'one' });
    await untilSaid(telegram, { chat: ada.id, text: 'You said: one' });
    await untilAtRest(dataDir, 1);
    const since = performance.now();
    await owner?.kill();
    workers = others;
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

  test('refuses a folder in use to a process that wants it alone and names the users; then refuses everybody else', async ({
    expect,
  }) => {
    const { telegram, dataDir, start } = stage;
    const refusal = await start().then(() => '', String);
    expect(refusal).toContain('data_folder_locked');
    for (const { pid } of [gateway, ...workers]) expect(refusal).toContain(String(pid));
    await Promise.all([gateway.kill(), ...workers.map((worker) => worker.stop())]);
    const { pid } = await start();
    telegram.userSends({ from: bob, text: 'one' });
    await untilSaid(telegram, { chat: bob.id, text: 'You said: one' });
    expect(readStore(dataDir, 'select role from boots')).toEqual([{ role: 'all' }]);
    // Another exclusive process is refused too: test/e2e/faults-start.test.ts.
    const others = (['gateway', 'worker'] as const).map((role) => start({ role }).then(() => '', String));
    for (const refused of await Promise.all(others))
      expect(refused).toMatch(new RegExp(`in use by process ${pid}\\b`));
  });
});

describeRow(
  'processes on one PostgreSQL, in folders of their own',
  (atEnd) => {
    let stage: Stage;
    let read: OwnDatabase['read'];
    /** The process that receives. */
    let gateway: ParleyProcess;
    let workers: readonly ParleyProcess[];
    const rowsOf = (id: number, sql: string) => read(`${sql} like '%:${id}'`);
    const received = (id: number) => rowsOf(id, 'select id from inbox where "laneKey"');

    beforeAll(async () => {
      const database = await makeDatabase(atEnd);
      read = database.read;
      stage = await openStage({ config: { lanes }, env: { DATABASE_URL: database.url } }, atEnd);
      [gateway, ...workers] = await Promise.all([
        stage.start({ role: 'gateway', folder: 'one' }),
        stage.start({ role: 'worker', folder: 'two' }),
        stage.start({ role: 'worker', folder: 'three' }),
      ]);
    });
    afterEach(() => stage.model.script(repeatAfterMe));

    test('starts several processes at once on a new database', async ({ expect }) => {
      const { telegram } = stage;
      expect(await read('select id from boots')).toHaveLength(3);
      telegram.userSends({ from: ada, text: 'one' });
      await untilSaid(telegram, { chat: ada.id, text: 'You said: one' });
    });

    test("continues a killed worker's run in another folder once its lease has expired", async ({
      expect,
    }) => {
      const { telegram, model } = stage;
      const [asked, from] = [model.requests.length, somebody(502)];
      const gate = answerBehind(stage);
      telegram.userSends({ from, text: 'Begin' });
      await model.waitForRequest(asked + 1);
      const worker = await untilWorked(workers, () =>
        rowsOf(from.id, 'select holder from lanes where "runId" is not null and key'),
      );
      const since = performance.now();
      await worker.kill();
      workers = workers.filter((one) => one !== worker);
      await model.waitForRequest(asked + 2);
      report('kill -9 of a worker, until one of another folder goes on with the run', since);
      gate.open();
      await untilSaid(telegram, { chat: from.id, text: 'After Begin.' });
      expect(said(telegram, from.id)).toEqual(['After Begin.']);
      await until(async () => (await read(`select id from runs where state <> 'finished'`)).length === 0, {
        what: 'the run ends',
      });
      expect(await rowsOf(from.id, 'select attempts from runs where "laneKey"')).toEqual([{ attempts: 2 }]);
    });

    test('receives in another gateway after one is killed', async ({ expect }) => {
      const { telegram, start } = stage;
      const from = somebody(503);
      const other = await start({ role: 'gateway', folder: 'four' });
      telegram.userSends({ from, text: 'one' });
      await untilSaid(telegram, { chat: from.id, text: 'You said: one' });
      const since = performance.now();
      await gateway.kill();
      gateway = other;
      telegram.userSends({ from, text: 'two' });
      const stored = async () => (await received(from.id)).length === 2;
      await until(stored, { what: 'the other gateway receives' });
      report('kill -9 of a gateway, until one of another folder has received', since);
      await untilSaid(telegram, { chat: from.id, text: 'You said: two' });
      expect(said(telegram, from.id)).toEqual(['You said: one', 'You said: two']);
    });

    test('takes over the account of a stopping gateway at once', async ({ expect }) => {
      const { telegram, start } = stage;
      const from = somebody(504);
      await start({ role: 'gateway', folder: 'five' });
      const holders = () => read('select holder from accounts where holder is not null');
      const before = await holders();
      const since = performance.now();
      await gateway.stop();
      await until(async () => (await holders()).some(({ holder }) => holder !== before[0]?.holder), {
        what: 'the other holds the account',
      });
      report('SIGTERM to a gateway, until one of another folder holds the account', since);
      telegram.userSends({ from, text: 'one' });
      await until(async () => (await received(from.id)).length === 1, { what: 'it is received' });
      expect(before).toHaveLength(1);
    });
  },
  { isSkipped: databaseServer === undefined },
);
