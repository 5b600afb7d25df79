/** Followers of a running gateway: an independent EventSource, a WebSocket and the command line. */
import { spawn } from 'node:child_process';
import { beforeAll, test } from 'vitest';
import { runParley } from '../cli/run-parley.ts';
import { createGate } from '../platforms/anthropic/gate.ts';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import { storedPartOf } from '../service/feed-stage.ts';
import { aFreePort } from '../support/free-port.ts';
import { describeRow } from './describe-row.ts';
import { type Follower, followEvents, followSocket } from './feed-client.ts';
import { openInstallation } from './installation.ts';
import { pageToken } from './page-state.ts';
import type { ParleyProcess } from './parley-process.ts';
import { openStage, type Stage } from './stage.ts';
import { until } from './until.ts';

const withToken = { authorization: `Bearer ${pageToken}` };

async function callAt(url: string, path: string, body?: object, secret = pageToken) {
  const answer = await fetch(`${url}${path}`, {
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'x-parley': '1' },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return {
    status: answer.status,
    headers: answer.headers,
    body: text.startsWith('{') ? JSON.parse(text) : text,
  };
}

/** Returns the key of the conversation with that person. */
async function sessionOf(url: string, person: number): Promise<string> {
  const { body } = await callAt(url, '/api/sessions');
  const found = body.sessions.find(({ key }: { readonly key: string }) => key.endsWith(`:${person}`));
  return found?.key ?? '';
}

const textsOf = (follower: Follower) =>
  [...follower.conversation().messages.values()].map(({ text }) => text);

describeRow('the feed of a gateway', (atEnd) => {
  let stage: Stage;
  let parley: ParleyProcess;
  let port: string;
  const feedOf = (query: Record<string, string>) => `${parley.url}/api/feed?${new URLSearchParams(query)}`;
  const isAnswered = (follower: Follower, text: string) =>
    until(() => textsOf(follower).includes(text), { what: `${text} is shown` });
  const say = async (person: number, text: string) => {
    const speaker = stage.person('telegram', person);
    const before = speaker.standing().length;
    speaker.says(text);
    await until(() => speaker.standing().length > before, { what: `${text} is answered` });
    return sessionOf(parley.url, person);
  };

  beforeAll(async () => {
    stage = await openStage({ networks: ['web'] }, atEnd);
    port = String(await aFreePort());
    parley = await stage.start({ env: { PARLEY_PORT: port } });
    stage.model.script((body) => ({ text: `Heard ${lastUserText(body)}` }));
  });

  test('tells a follower of a run as it happens, across a kill of the gateway, and its end once', async ({
    expect,
  }) => {
    const session = await say(501, 'one');
    const events = followEvents(feedOf({ session }), pageToken);
    atEnd(events.close);
    await isAnswered(events, 'Heard one');
    const gate = createGate();
    let isHeld = true;
    stage.model.script((body) => ({
      chunks: ['The sky ', 'is blue ', `after ${lastUserText(body)}.`],
      ...(isHeld && { hold: { gate, afterChunks: 2 } }),
    }));
    stage.person('telegram', 501).says('two');
    await until(() => events.conversation().preview?.text === 'The sky is blue', {
      what: 'the text is shown',
    });
    const socket = followSocket(feedOf({ session }), pageToken);
    await until(() => socket.conversation().preview?.text === 'The sky is blue', {
      what: 'a late follower sees the text that is written',
    });
    isHeld = false;
    await parley.kill();
    parley = await stage.start({ env: { PARLEY_PORT: port } });
    gate.open();
    await isAnswered(events, 'The sky is blue after two.');
    await until(() => events.ends().length === 1, { what: 'the end is told' });
    const again = followSocket(`${feedOf({ session })}&after=${socket.lastId()}`, pageToken);
    await until(() => again.ends().length === 1, { what: 'the end is told over the WebSocket, too' });
    const fresh = followSocket(feedOf({ session }), pageToken);
    await until(() => fresh.frames.length > 0 && events.conversation().run === undefined, {
      what: 'it is quiet',
    });
    await until(
      () =>
        JSON.stringify(storedPartOf(events.conversation())) ===
        JSON.stringify(storedPartOf(fresh.conversation())),
      { what: 'both have the same' },
    );
    expect(events.ends()).toEqual(again.ends());
    expect(fresh.ends()).toEqual([]);
    for (const one of [socket, again, fresh]) one.close();
  });

  test('ends the feed of a run with its answer and its end, after which an EventSource stays away', async ({
    expect,
  }) => {
    const gate = createGate();
    stage.model.script(() => ({ chunks: ['Yes, ', 'indeed.'], hold: { gate, afterChunks: 1 } }));
    const { body } = await callAt(parley.url, '/api/agent', { message: 'really?' });
    const run = followEvents(feedOf({ run: body.runId }), pageToken);
    atEnd(run.close);
    await until(() => run.frames.length > 0, { what: 'it has begun' });
    gate.open();
    await until(() => run.ends().length > 0, { what: 'the end is told' });
    const events = run.frames.flatMap((frame) => (frame.type === 'event' ? [frame.event] : []));
    expect(events.findLast(({ kind }) => kind === 'answer')).toMatchObject({ text: 'Yes, indeed.' });
    await until(() => run.isClosed(), { what: 'the EventSource has given up' });
    expect(run.ends()).toEqual([body.runId]);
    // A later reader gets the same at once.
    const late = followSocket(feedOf({ run: body.runId }), pageToken);
    await until(() => late.ends().length > 0 && !late.isOpen(), { what: 'it has ended' });
    expect(late.frames.map(({ type }) => type)).toEqual(['snapshot', 'event', 'event']);
  });

  test('tells a follower of one session, and of some kinds, nothing else', async ({ expect }) => {
    stage.model.script((body) => ({ text: `Heard ${lastUserText(body)}` }));
    const mine = await say(511, 'mine');
    const other = await say(512, 'secret');
    const follower = followEvents(feedOf({ session: mine }), pageToken);
    const kinds = followSocket(feedOf({ session: other, kind: 'run,title' }), pageToken);
    await isAnswered(follower, 'Heard mine');
    await until(() => kinds.frames.length > 0, { what: 'the snapshot has come' });
    await say(512, 'secret again');
    await say(511, 'mine again');
    await isAnswered(follower, 'Heard mine again');
    await until(() => kinds.ends().length === 1, { what: 'the end is told' });
    expect(JSON.stringify(follower.frames)).not.toContain('secret');
    expect(kinds.frames.map((frame) => (frame.type === 'event' ? frame.event.kind : frame.type))).toEqual([
      'snapshot',
      'run',
      'run',
    ]);
    expect(kinds.conversation().messages.size).toBe(0);
    for (const one of [follower, kinds]) one.close();
  });

  test('refuses what a caller may not read as it refuses what does not exist', async ({ expect }) => {
    const session = await say(521, 'hello');
    const create = async (...scopes: readonly string[]) =>
      (await callAt(parley.url, '/api/tokens/create', { name: crypto.randomUUID().slice(0, 8), scopes }))
        .body;
    const [chat, read, operate] = [await create('chat'), await create('read'), await create('operate')];
    const ask = (query: Record<string, string>, secret = pageToken) =>
      callAt(parley.url, `/api/feed?${new URLSearchParams(query)}`, undefined, secret);
    const { body } = await callAt(parley.url, '/api/agent', { message: 'hi' });
    const nowhere = await ask({ session: 'main:telegram:telegram:dm:1' });
    expect(nowhere).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } });
    for (const query of [{ session }, { session: 'main' }, {}, { run: body.runId }, { run: 'x' }])
      expect(await ask(query, chat.secret)).toMatchObject({ status: 404, body: nowhere.body });
    expect(await ask({ session, run: body.runId })).toMatchObject({ status: 404, body: nowhere.body });
    const reader = followSocket(feedOf({ session }), pageToken);
    await until(() => reader.lastId() !== undefined, { what: 'the snapshot has come' });
    const id = reader.lastId() ?? '';
    const foreign = `x${id.slice(1)}`;
    for (const query of [
      { session, after: foreign },
      { session, after: 'x' },
      { after: id },
      { session, kind: 'secrets' },
      { session, what: '1' },
    ] as const)
      expect((await ask(query)).status, JSON.stringify(query)).toBe(400);
    expect((await ask({ session }, operate.secret)).status).toBe(403);
    expect((await ask({ session }, 'wrong')).status).toBe(401);
    const { status } = await fetch(feedOf({ session }), { method: 'HEAD', headers: withToken });
    expect(status).toBe(404);

    // A program reads its own conversations with the scope `chat` alone, also before they begin.
    const own = `main:api:${chat.id}:dm:shopping`;
    const program = followEvents(feedOf({ session: own }), chat.secret);
    await until(() => program.frames.length > 0, { what: 'it follows' });
    await callAt(
      parley.url,
      '/v1/responses',
      { model: 'main', conversation: 'shopping', input: 'milk' },
      chat.secret,
    );
    await until(() => program.ends().length === 1, { what: 'its run has ended' });
    const whole = followSocket(feedOf({ session: own }), read.secret);
    await until(() => whole.frames.length > 0, { what: 'a token that may read everything follows, too' });

    await callAt(parley.url, '/api/tokens/revoke', { which: chat.id });
    await until(() => program.isClosed(), { what: 'a revoked token is cut off' });
    for (const one of [reader, program, whole]) one.close();
  });

  test('shows a run in the terminal, and says by its exit code how it ended', async ({ expect }) => {
    const follow = (...args: readonly string[]) =>
      runParley(['follow', ...args], {
        PARLEY_DATA_DIR: stage.dataDir,
        PARLEY_TOKEN: pageToken,
        PARLEY_CONFIG: `${stage.home}/parley.config.json`,
      });
    const gate = createGate();
    stage.model.script(() => ({ chunks: ['In the ', 'terminal.'], hold: { gate, afterChunks: 1 } }));
    const { body } = await callAt(parley.url, '/api/agent', { message: 'show me' });
    const shown = follow(body.runId);
    const asJson = follow(body.runId, '--json');
    await stage.model.waitForRequest(stage.model.requests.length);
    gate.open();
    expect(await shown).toEqual({ code: 0, stdout: 'In the terminal.\n', stderr: '' });
    const frames = (await asJson).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(frames.at(0).type).toBe('snapshot');
    expect(frames.at(-1).event).toEqual({ kind: 'run', runId: body.runId, state: 'ended' });
    stage.model.script((words) => ({ text: `Heard ${lastUserText(words)}` }));
    const session = await say(541, 'before');
    const example = spawn(process.execPath, ['examples/feed/follow.ts', session], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { PARLEY_URL: parley.url, PARLEY_TOKEN: pageToken },
    });
    atEnd(() => example.kill());
    let printed = '';
    example.stdout.on('data', (chunk) => {
      printed += chunk;
    });
    await until(() => printed.includes('Heard before'), { what: 'the example shows what was said' });
    await say(541, 'after');
    await until(() => printed.includes('Heard after') && printed.includes('"state":"ended"'), {
      what: 'the example shows the next run',
    });
    expect(await follow('nothing')).toMatchObject({ code: 1, stderr: expect.stringContaining('no such') });
  });
});

describeRow('the feed of two gateways and two workers', (atEnd) => {
  test('tells followers of both the same, while each process is killed', async ({ expect }) => {
    const parleys = await openInstallation({ database: 'sqlite' }, atEnd as never);
    const ports = { one: String(await aFreePort()), two: String(await aFreePort()) };
    const starting = {
      one: () => parleys.start('one', { role: 'gateway', env: { PARLEY_PORT: ports.one } }),
      two: () => parleys.start('two', { role: 'gateway', env: { PARLEY_PORT: ports.two } }),
      worker: () => parleys.start('worker', { role: 'worker' }),
      other: () => parleys.start('other', { role: 'worker' }),
    };
    const members = {
      one: await starting.one(),
      two: await starting.two(),
      worker: await starting.worker(),
      other: await starting.other(),
    };
    parleys.model.script((body) => ({ chunks: ['Heard ', lastUserText(body)] }));
    const person = parleys.person('telegram', 531);
    person.says('number 0');
    await until(() => person.standing().length === 1, { what: 'the first is answered' });
    const session = await sessionOf(members.one.url, 531);
    const followers = [members.one, members.two].map(({ url }) =>
      followEvents(`${url}/api/feed?${new URLSearchParams({ session })}`, pageToken),
    );
    for (const { close } of followers) atEnd(close);
    await until(() => followers.every(({ frames }) => frames.length > 0), { what: 'both follow' });
    for (const [index, name] of (['worker', 'one', 'two'] as const).entries()) {
      person.says(`number ${index + 1}`);
      await members[name].kill();
      members[name] = await starting[name]();
      await until(() => person.standing().at(-1) === `Heard number ${index + 1}`, {
        what: `number ${index + 1} is answered`,
      });
    }
    const runs = (await parleys.read("select id from runs where state = 'finished'")).length;
    await until(() => followers.every((one) => one.ends().length === runs - 1 && one.isOpen()), {
      what: 'both know each end but the first',
    });
    const fresh = followSocket(`${members.two.url}/api/feed?${new URLSearchParams({ session })}`, pageToken);
    const same = (one: Follower) =>
      JSON.stringify(storedPartOf(one.conversation())) === JSON.stringify(storedPartOf(fresh.conversation()));
    await until(() => fresh.frames.length > 0 && followers.every(same), {
      what: 'all have what is stored',
    });
    const [one, two] = followers;
    expect(one?.ends()).toEqual(two?.ends());
    expect(new Set(one?.ends()).size).toBe(runs - 1);
    fresh.close();
  }, 240_000);
});
