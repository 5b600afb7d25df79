import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { runParley } from '../cli/run-parley.ts';
import { createGate } from '../platforms/anthropic/gate.ts';
import { lastTextShown, textShown, type WireBody } from '../platforms/anthropic/wire.ts';
import { onePixel } from '../support/one-pixel.ts';
import { countEvents, countTold, findBreaches, readStore, untilAtRest } from './conservation.ts';
import { makeDoor } from './cut-proxy.ts';
import { describeRow } from './describe-row.ts';
import { databaseServer, makeDatabase } from './own-database.ts';
import { type SignalSide, signalOf } from './signal-side.ts';
import { type AtEnd, openStage, type Stage, type StageSettings } from './stage.ts';
import { until } from './until.ts';

async function openSignal(atEnd: AtEnd, settings: StageSettings = {}) {
  const stage = await openStage({ networks: ['signal'], ...settings }, atEnd);
  return { stage, signal: signalOf(stage) };
}

const agents = [{ id: 'main' }, { id: 'cook', name: 'Auguste', specialty: 'Recipes' }];
const echo = (body: WireBody) => ({ text: `You said: ${lastTextShown(body)}` });

describeRow('on Signal', (atEnd) => {
  let stage: Stage;
  let signal: SignalSide;

  beforeAll(async () => {
    ({ stage, signal } = await openSignal(atEnd, { config: { agents } }));
    await stage.start({ env: { PARLEY_OWNERS: `signal:${signal.user(507).uuid}` } });
  });

  test('answers a direct message once, with read receipt, typing and styles', async ({ expect }) => {
    const { server } = signal;
    const before = countEvents(stage.dataDir);
    const ada = signal.user(501);
    const gate = createGate();
    stage.model.script([{ text: 'The sky is **blue**, 2 * 3 = 6.', hold: { gate } }]);
    const question = server.people.writes({ from: ada, text: 'What colour is the sky?' });
    await gate.reached;
    await server.waitFor(() => server.platform.typing.length > 0);
    await server.waitFor(() => question.readBy.has(server.account.uuid));
    gate.open();
    await server.waitFor(() => server.botMessages(ada).length === 1);
    await untilAtRest(stage.dataDir, before + 1);

    const [answer] = server.botMessages(ada);
    expect([answer?.text, answer?.styles]).toEqual([
      'The sky is blue, 2 * 3 = 6.',
      [{ style: 'BOLD', start: 11, length: 4 }],
    ]);
    expect(countTold(stage.dataDir, ['What colour is the sky?'])).toEqual([1]);
    expect(findBreaches(stage.dataDir)).toEqual([]);
    expect(server.refusals).toEqual([]);
    // People's receipts and typing create no rows.
    server.people.types(ada);
    await server.waitFor(
      () => server.posts.at(-1)?.body.includes('STARTED') && server.posts.at(-1)?.status === 200,
    );
    expect(countEvents(stage.dataDir)).toBe(before + 1);
  });

  test('shows the model a picture of which the server keeps no copy', async ({ expect }) => {
    const { server } = signal;
    const [before, asked] = [countEvents(stage.dataDir), stage.model.requests.length];
    stage.model.script(() => ({ text: 'A onePixel.' }));
    const ada = signal.user(502);
    const photo = server.world.addAttachment({
      bytes: onePixel,
      fileName: 'onePixel.png',
      contentType: 'image/png',
    });
    server.people.writes({ from: ada, text: 'What is this?', attachments: [photo] });
    await server.waitFor(() => server.botMessages(ada).length === 1);
    expect(JSON.stringify(stage.model.requests[asked]?.body)).toContain(onePixel.toString('base64'));
    await server.waitFor(() => !server.world.attachments.has(photo.id));
    await untilAtRest(stage.dataDir, before + 1);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test("leaves the owner's messages to others alone, and answers a note to self", async ({ expect }) => {
    const { server } = signal;
    const before = countEvents(stage.dataDir);
    stage.model.script(echo);
    server.people.writes({ from: server.account, to: signal.user(503), text: 'a private word' });
    server.people.writes({ from: server.account, text: 'note this' });
    await server.waitFor(() =>
      server.botMessages(server.account).some(({ text }) => text.startsWith('You said')),
    );
    await untilAtRest(stage.dataDir, before + 2);
    expect(stage.model.requests.map(({ body }) => textShown(body)).join()).not.toContain('a private word');
    const ledger = readStore(stage.dataDir, 'select outcome, reason from ledger order by at');
    expect(ledger.slice(before)).toEqual([
      { outcome: 'ignored', reason: 'own-message' },
      { outcome: 'accepted', reason: null },
    ]);
  });

  test('tells the owner and `why` whose safety number blocks a message, and how to trust it', async ({
    expect,
  }) => {
    const { server } = signal;
    const before = countEvents(stage.dataDir);
    const bob = signal.user(506);
    server.people.sendsUnreadable(bob, { type: 'UntrustedIdentityException', message: 'untrusted' });
    await untilAtRest(stage.dataDir, before + 1);
    const notices = () =>
      readStore(stage.dataDir, `select subject, details from "ownerNotices" where kind = 'events-missed'`);
    await until(() => notices().some(({ subject }) => String(subject).includes(bob.uuid)), {
      what: 'a notice about the person',
    });
    const [row] = readStore(
      stage.dataDir,
      `select "messageId" from ledger where reason = 'unreadable' and raw like '%${bob.uuid}%'`,
    );
    const { stdout } = await runParley(['why', String(row?.messageId)], { PARLEY_DATA_DIR: stage.dataDir });
    expect(stdout).toContain(
      `has a new safety number; to trust it: PUT /v1/identities/${server.account.number}/trust/${bob.uuid}`,
    );
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('answers a group when Parley is mentioned or replied to, with the messages before it', async ({
    expect,
  }) => {
    const { server } = signal;
    const [before, asked] = [countEvents(stage.dataDir), stage.model.requests.length];
    const [ada, bob] = [signal.user(504), signal.user(505)];
    const team = server.world.addGroup({ name: 'Team', members: [ada, bob, server.account] });
    stage.model.script((_body, count) => ({ text: `Answer ${count}.` }));
    server.people.writes({ from: bob, to: team, text: 'The roses want water.' });
    const bot = { ...server.account, name: 'Parley' };
    server.people.writes({ from: ada, to: team, text: '@Parley what did Bob say?', mentioning: [bot] });
    const first = await server.waitFor(() => server.botMessages(team)[0]);
    server.people.writes({ from: bob, to: team, text: 'Is that all?', quoting: first });
    await server.waitFor(() => server.botMessages(team).length === 2);
    await untilAtRest(stage.dataDir, before + 3);
    const requests = stage.model.requests.slice(asked);
    const [one = '', two = ''] = requests.map(({ body }) => textShown(body));
    expect(one).toMatch(
      /<<<untrusted [^>]*>>>\n\[Person 505[^\n]*\] The roses want water\.\n<<<end untrusted/,
    );
    expect(one).toMatch(/\[Person 504[^\n]*\] @Parley what did Bob say\?/);
    expect(two).toContain('Is that all?');
    expect(server.botMessages(team).map(({ text }) => text)).toEqual(['Answer 1.', 'Answer 2.']);
    expect(findBreaches(stage.dataDir)).toEqual([]);
    expect(server.refusals).toEqual([]);
  });

  test('gives a group an agent of its own by one command of the owner', async ({ expect }) => {
    const { server } = signal;
    const before = countEvents(stage.dataDir);
    const [bob, owner] = [signal.user(505), signal.user(507)];
    const kitchen = server.world.addGroup({ name: 'Kitchen', members: [bob, owner, server.account] });
    stage.model.script(echo);
    server.people.writes({ from: owner, to: kitchen, text: '/agent auguste' });
    const told = await server.waitFor(() => server.botMessages(kitchen)[0]);
    expect(told.text).toMatch(/Auguste \(cook\) answers in this group/);
    const bot = { ...server.account, name: 'Parley' };
    server.people.writes({ from: bob, to: kitchen, text: '@Parley soup?', mentioning: [bot] });
    await untilAtRest(stage.dataDir, before + 2);
    const lanes = readStore(
      stage.dataDir,
      "select l.key from lanes l join inbox i on i.laneKey = l.key where i.content like '%soup?%'",
    );
    expect(lanes.map(({ key }) => String(key).split(':')[0])).toEqual(['cook']);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('shows the model quoted pictures, captions, view-once pictures and polls', async ({ expect }) => {
    const { server } = signal;
    const ada = signal.user(508);
    const file = (fileName: string) =>
      server.world.addAttachment({ bytes: onePixel, fileName, contentType: 'image/png' });
    const bodies = () => stage.model.requests.map(({ body }) => body);
    stage.model.script((_body, count) => ({ text: `Read ${count}.` }));
    let answers = 0;
    const readAfter = async (fields: Readonly<Record<string, unknown>>, text = '') => {
      const before = countEvents(stage.dataDir);
      server.people.writes({ from: ada, text, fields });
      answers += 1;
      await server.waitFor(() => server.botMessages(ada).length === answers);
      await untilAtRest(stage.dataDir, before + 1);
      const all = bodies().at(-1);
      return {
        text: all ? textShown(all) : '',
        pictures: JSON.stringify(all).split(onePixel.toString('base64')).length - 1,
      };
    };
    const attached = (fileName: string, more = {}) => {
      const { id } = file(fileName);
      return { id, contentType: 'image/png', filename: fileName, size: onePixel.length, ...more };
    };
    const thumbnail = attached('quoted.png');
    const quote = {
      ...{ id: 1, author: ada.uuid, authorNumber: null, authorUuid: ada.uuid, text: '' },
      attachments: [{ contentType: 'image/png', filename: 'quoted.png', thumbnail }],
    };
    const quoted = await readAfter({ quote }, 'What is this?');
    expect(quoted.pictures).toBe(1);
    expect(quoted.text).toMatch(/untrusted \w+ quote from /);
    const captioned = await readAfter({ attachments: [attached('cat.png', { caption: 'my cat' })] });
    expect([captioned.pictures, captioned.text]).toEqual([2, expect.stringContaining('my cat')]);
    expect((await readAfter({ viewOnce: true, attachments: [attached('once.png')] })).pictures).toBe(3);
    const pollCreate = { question: 'Pizza or pasta?', allowMultiple: false, options: ['Pizza', 'Pasta'] };
    expect((await readAfter({ pollCreate })).text).toContain('Poll: Pizza or pasta?\n1. Pizza\n2. Pasta');
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('adds pictures posted before the message that mentions Parley, but no deleted ones', async ({
    expect,
  }) => {
    const { server } = signal;
    const [before, asked] = [countEvents(stage.dataDir), stage.model.requests.length];
    const [ada, bob] = [signal.user(506), signal.user(507)];
    const team = server.world.addGroup({ name: 'Team', members: [ada, bob, server.account] });
    stage.model.script(() => ({ text: 'A onePixel.' }));
    const file = (fileName: string) =>
      server.world.addAttachment({ bytes: onePixel, fileName, contentType: 'image/png' });
    const [shown, deleted] = [file('shown.png'), file('deleted.png')];
    server.people.writes({ from: bob, to: team, text: '', attachments: [shown] });
    server.people.deletes(server.people.writes({ from: bob, to: team, text: '', attachments: [deleted] }));
    const bot = { ...server.account, name: 'Parley' };
    server.people.writes({ from: ada, to: team, text: '@Parley what did Bob post?', mentioning: [bot] });
    await server.waitFor(() => server.botMessages(team).length === 1);
    const body = JSON.stringify(stage.model.requests[asked]?.body);
    expect(body.split(onePixel.toString('base64'))).toHaveLength(2);
    expect(body).toContain('The files below came with an earlier message by Person 507;');
    expect(body).not.toContain('deleted.png');
    await server.waitFor(() => !server.world.attachments.has(shown.id));
    const paths = server.calls.map(({ path }) => path);
    expect(paths.filter((path) => path.includes(`attachments/${deleted.id}`))).toEqual([]);
    await untilAtRest(stage.dataDir, before + 4);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });
});

describe.concurrent('a restart with Signal', { timeout: 300_000 }, () => {
  test('continues the conversation after a restart and says since when messages may be missing', async ({
    expect,
    onTestFinished,
  }) => {
    const { stage, signal } = await openSignal(onTestFinished);
    stage.model.script(echo);
    const person = signal.person(501);
    const first = await stage.start();
    person.says('My cat is called Byron.');
    await until(() => person.standing().length === 1, { what: 'the first answer' });
    await first.stop();
    // This one is lost: signal-cli has already confirmed it to Signal.
    signal.server.people.writes({ from: signal.user(501), text: 'Lost.' });
    await stage.start();
    person.says('What is my cat called?');
    await until(() => person.standing().length === 2, { what: 'the second answer' });
    await untilAtRest(stage.dataDir, 2);
    const { messages } = stage.model.requests[1]?.body ?? { messages: [] };
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(countTold(stage.dataDir, ['Lost.'])).toEqual([0]);
    const log = await readFile(join(stage.dataDir, 'test.log'), 'utf8');
    expect(log.match(/keeps nothing in json-rpc mode/g)?.length).toBeGreaterThan(0);
  });

  test('reports after a kill, but not after a stop, that a poll may have been cut off', async ({
    expect,
    onTestFinished,
  }) => {
    const { stage, signal } = await openSignal(onTestFinished, { networks: ['polled-signal'] });
    const polls = () => signal.server.calls.filter(({ path }) => path.startsWith('/v1/receive')).length;
    const missed = () =>
      readStore(stage.dataDir, `select details from "ownerNotices" where kind = 'events-missed'`);
    const first = await stage.start();
    await until(() => polls() > 0, { what: 'a poll' });
    await first.stop();
    const second = await stage.start();
    const before = polls();
    await until(() => polls() > before, { what: 'a poll' });
    expect(missed()).toEqual([]);
    await second.kill();
    await stage.start();
    await until(() => missed().length > 0, { what: 'the alert' });
    expect(missed()).toEqual([{ details: expect.stringContaining('was killed') }]);
  });
});

/** A gateway on its own database, which the test can make unreachable. */
async function openBehindDoor(atEnd: AtEnd) {
  const database = await makeDatabase(atEnd);
  const inside = new URL(database.url);
  const door = await makeDoor({ host: inside.hostname, port: Number(inside.port) }, atEnd);
  const outside = new URL(database.url);
  outside.hostname = '127.0.0.1';
  outside.port = String(door.port);
  const config = { queue: { dm: { mode: 'followup' } } };
  const { stage, signal } = await openSignal(atEnd, { config, env: { DATABASE_URL: outside.href } });
  stage.model.script(echo);
  return { database, door, stage, signal };
}

// Without PARLEY_TEST_DATABASE_URL there is no database that can become unreachable while the process lives.
describe.skipIf(databaseServer === undefined)('Signal while the database is away', () => {
  test('keeps messages in the spool across a kill while the database is away, and answers them in order', {
    timeout: 300_000,
  }, async ({ expect, onTestFinished }) => {
    const { database, door, stage, signal } = await openBehindDoor(onTestFinished);
    const person = signal.person(501);
    const parley = await stage.start();
    person.says('Before.');
    await until(() => person.standing().length === 1, { what: 'an answer' });
    // A kill before the part is marked as sent would rightly make the answer `unknown`.
    const sent = () => database.read(`select 1 from outbox where state = 'sent'`);
    await until(async () => (await sent()).length === 1, { what: 'the answer marked as sent' });

    door.shut();
    const spooled = ['One.', 'Two.', 'Three.'];
    for (const text of spooled) person.says(text);
    await until(person.isHeard, { what: 'the webhook has answered 200' });
    const kept = await readdir(join(stage.dataDir, 'channels/signal'));
    expect(kept.some((name) => name.startsWith('spool'))).toBe(true);
    await parley.kill();

    door.open();
    await stage.start();
    person.says('After.');
    const wanted = ['Before.', ...spooled, 'After.'].map((text) => `You said: ${text}`);
    await until(() => person.standing().length >= wanted.length, { what: 'all answers' });
    expect(person.standing()).toEqual(wanted);
    expect(await database.read('select distinct outcome from inbox')).toEqual([{ outcome: 'answered' }]);
  });

  test('keeps messages that arrive while a start waits for the database, and answers them afterwards', {
    timeout: 300_000,
  }, async ({ expect, onTestFinished }) => {
    const { database, door, stage, signal } = await openBehindDoor(onTestFinished);
    const person = signal.person(501);
    door.shut();
    const waiting = await stage.start();
    person.says('To the first that waits.');
    await until(person.isHeard, { what: 'the webhook has answered 200' });
    await waiting.kill();

    await stage.start();
    person.says('To the second.');
    await until(person.isHeard, { what: 'the webhook has answered 200' });
    door.open();
    const wanted = ['To the first that waits.', 'To the second.'].map((text) => `You said: ${text}`);
    await until(() => person.standing().length >= wanted.length, { what: 'all answers' });
    expect(person.standing()).toEqual(wanted);
    expect(await database.read('select distinct outcome from inbox')).toEqual([{ outcome: 'answered' }]);
  });
});
