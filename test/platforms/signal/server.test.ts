/** The test server must refuse what signal-cli-rest-api refuses, or the tests that rely on it prove nothing. */
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { againstSwagger } from './fairness.ts';
import { routes } from './routes.ts';
import { type SignalServer, type SignalServerOptions, startSignalServer } from './server.ts';
import { describedPaths } from './swagger.ts';
import type { Group, Person } from './types.ts';

let server: SignalServer;
let ada: Person;
let bob: Person;
let team: Group;

const begin = async (options: SignalServerOptions = {}) => {
  await server?.close();
  server = await startSignalServer(options);
  ada = server.world.addPerson({ name: 'Ada', number: null });
  bob = server.world.addPerson({ name: 'Bob', username: 'bob.42' });
  team = server.world.addGroup({ name: 'Team', members: [ada, bob, server.account] });
};
beforeEach(() => begin());
afterEach(async () => {
  expect(againstSwagger(server)).toEqual([]);
  await server.close();
});

const call = async (method: string, path: string, body?: unknown) => {
  const response = await fetch(`${server.url}${path}`, {
    method,
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const type = response.headers.get('content-type') ?? '';
  return { status: response.status, type, text, json: () => JSON.parse(text) as Record<string, unknown> };
};
const send = (body: object, number = server.number) =>
  call('POST', '/v2/send', { number, message: 'hello', ...body });
const timestampOf = async (answer: ReturnType<typeof send>) => Number((await answer).json().timestamp);
const why = () => server.refusals.map((one) => one.why);

it('answers every call of the document that it copies, and no other', () => {
  const answered = routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
  expect([...answered, 'GET /v1/receive/{number}'].sort()).toEqual([...describedPaths].sort());
});

describe('what the server says of itself', () => {
  it.each(['json-rpc', 'normal', 'native'] as const)('describes itself in mode %s', async (mode) => {
    await begin({ mode });
    expect((await call('GET', '/v1/about')).json()).toEqual({
      versions: ['v1', 'v2'],
      build: 2,
      mode,
      version: '0.100',
      capabilities: { 'v2/send': ['quotes', 'mentions'] },
    });
    expect(await call('GET', '/v1/health')).toMatchObject({ status: 204, text: '' });
    expect((await call('GET', '/v1/accounts')).json()).toEqual([server.number]);
  });
});

describe('sends', () => {
  it('answers sends with an array in the newer release, which names who was not reached', async () => {
    await begin({ release: 'head' });
    expect(JSON.parse((await send({ recipients: [team.id] })).text)).toEqual([
      { timestamp: expect.stringMatching(/^\d{13}$/) },
    ]);
    server.platform.unregistered.add(bob.uuid);
    expect(JSON.parse((await send({ recipients: [team.id] })).text)).toEqual([
      {
        timestamp: expect.stringMatching(/^\d{13}$/),
        errors: { recipients: [{ number: bob.number, uuid: bob.uuid, reason: 'UNREGISTERED_FAILURE' }] },
      },
    ]);
    expect((await send({ recipients: [bob.uuid] })).json()).toEqual({ error: 'Failed to send message' });
  });

  it.each<[string, () => object, string]>([
    ['no recipient', () => ({}), "Couldn't process request - please provide at least one recipient"],
    [
      'no number',
      () => ({ recipients: [ada.uuid], number: '' }),
      "Couldn't process request - please provide a valid number",
    ],
    ['a foreign number', () => ({ recipients: [ada.uuid], number: '+1' }), 'User +1 is not registered.'],
    [
      'a number and a group',
      () => ({ recipients: [bob.number, team.id] }),
      'Signal Messenger Groups and phone numbers cannot be specified together in one request! Please split them up into multiple REST API calls.',
    ],
    [
      'a username and a group',
      () => ({ recipients: ['bob.42', team.id] }),
      'Signal Messenger Groups and usernames cannot be specified together in one request! Please split them up into multiple REST API calls.',
    ],
    [
      'a username and a uuid',
      () => ({ recipients: ['bob.42', ada.uuid] }),
      'Signal Messenger phone numbers and usernames cannot be specified together in one request! Please split them up into multiple REST API calls.',
    ],
    [
      'two groups',
      () => ({ recipients: [team.id, team.id] }),
      'A signal message cannot be sent to more than one group at once! Please use multiple REST API calls for that.',
    ],
    [
      'a group encoded once',
      () => ({ recipients: [`group.${team.internalId}`] }),
      'Invalid identifier group.',
    ],
    ['an old group', () => ({ recipients: ['group.WVdKalpHVm1aMmhwYW10c2JXNXZjQT09'] }), 'Invalid'],
    ['a sticker without a colon', () => ({ recipients: [ada.uuid], sticker: 'x' }), "Couldn't process"],
    ['nothing', () => ({ recipients: [ada.uuid], message: '' }), 'No message body or attachments given'],
    [
      'view once without a picture',
      () => ({ recipients: [ada.uuid], view_once: true }),
      "'view_once' can only be set for image attachments!",
    ],
    [
      'a file that is no base64',
      () => ({ recipients: [ada.uuid], base64_attachments: ['not base64!'] }),
      'illegal base64 data',
    ],
    [
      'a quote of nobody',
      () => ({ recipients: [ada.uuid], quote_timestamp: 1_700_000_000_000 }),
      'Failed to parse quote author',
    ],
  ])('refuses a send with %s', async (_, body, error) => {
    const answer = await send(body());
    expect(answer).toMatchObject({ status: 400, type: 'application/json; charset=utf-8' });
    expect(answer.json().error).toContain(error);
    expect(server.refusals).toMatchObject([{ status: 400, why: answer.json().error }]);
    expect(server.sent).toEqual([]);
  });

  it.each([
    ['a timestamp as text', { recipients: ['+15552000002'], quote_timestamp: '1700000000123' }],
    ['a timestamp with a fraction', { recipients: ['+15552000002'], edit_timestamp: 1.5 }],
    ['a recipient that is no text', { recipients: [15552000002] }],
    ['recipients as text', { recipients: '+15552000002' }],
    ['mentions that are no list', { recipients: ['+15552000002'], mentions: {} }],
    ['a body that is no JSON', '{"number":'],
  ])('refuses a send with %s as JSON that is called plain text', async (_, body) => {
    const answer = await (typeof body === 'string' ? call('POST', '/v2/send', body) : send(body));
    expect(answer).toMatchObject({ status: 400, type: 'text/plain; charset=utf-8' });
    expect(answer.json()).toEqual({ error: "Couldn't process request - invalid request" });
  });

  it("refuses sends to groups that the account isn't in or may only read", async () => {
    const closed = server.world.addGroup({ name: 'Closed', members: [ada] });
    const board = server.world.addGroup({
      name: 'Board',
      members: [ada, server.account],
      isAnnouncement: true,
    });
    expect((await send({ recipients: [closed.id] })).text).toContain('User is not a member in group');
    expect((await send({ recipients: [board.id] })).text).toContain('not allowed to send message to group');
    server.people.changesGroup(ada, team, ({ members }) => members.splice(2, 1));
    expect((await send({ recipients: [team.id] })).text).toContain('User is not a member in group');
  });

  it("accepts sends to a group's internal id, which reach nobody", async () => {
    expect(await send({ recipients: [team.internalId] })).toMatchObject({ status: 201 });
    expect(server.lines(team)).toEqual([]);
    expect(why()).toEqual([`${team.internalId} is nobody here (taken for a username)`]);
    expect(server.refusals[0]?.status).toBe(201);
  });

  it('notes sends with lost markers, mentions outside the text or unknown quotes', async () => {
    await send({ recipients: [ada.uuid], message: '2 * 3', text_mode: 'styled' });
    await send({ recipients: [ada.uuid], mentions: [{ start: 5, length: 1, author: bob.uuid }] });
    await send({ recipients: [ada.uuid], quote_timestamp: 5, quote_author: ada.uuid, quote_message: 'x' });
    expect(server.lines(ada)[0]).toBe('Parley: 2  3');
    expect(why()).toEqual([
      'markers that never close are swallowed: *',
      'a mention at 5+1 lies outside the text of 5 units',
      `quote of 5 by ${ada.uuid}, which is no message there`,
    ]);
  });
});

describe('what stands in a conversation', () => {
  it('edits a message under the timestamp of the original', async () => {
    const first = await timestampOf(send({ recipients: [team.id] }));
    const edit = (edit_timestamp: number, message: string) =>
      timestampOf(send({ recipients: [team.id], message, edit_timestamp }));
    const second = await edit(first, 'hello there');
    expect(second).toBeGreaterThan(first);
    await edit(second, 'lost');
    expect(server.lines(team)).toEqual(['Parley: hello there']);
    expect(server.messages(team)[0]?.history).toMatchObject([{ text: 'hello', editedAt: second }]);
    expect(why()).toEqual([`edit of ${second}, which is no message of ${server.number} there`]);
  });

  it('lets only its author delete a message', async () => {
    const own = await timestampOf(send({ recipients: [team.id] }));
    const { timestamp: foreign } = server.people.writes({ from: ada, to: team, text: 'mine' });
    const remove = (timestamp: number) =>
      call('DELETE', `/v1/remote-delete/${encodeURIComponent(server.number)}`, {
        recipient: team.id,
        timestamp,
      });
    expect((await remove(own)).json()).toEqual({ timestamp: expect.stringMatching(/^\d{13}$/) });
    expect((await remove(foreign)).status).toBe(201);
    expect(server.lines(team)).toEqual(['Ada: mine']);
    expect(why()).toEqual([`delete of ${foreign}, which is no message of ${server.number} there`]);
  });

  it('keeps one reaction per person, and notes a reaction to nothing', async () => {
    const message = server.people.writes({ from: ada, text: 'hi' });
    const react = (method: string, fields: object) =>
      call(method, `/v1/reactions/${server.number}`, {
        recipient: ada.uuid,
        target_author: ada.uuid,
        timestamp: message.timestamp,
        ...fields,
      });
    expect((await react('POST', {})).json().error).toBe("Couldn't process request - reaction missing");
    for (const reaction of ['👍', '🎉']) expect((await react('POST', { reaction })).status).toBe(204);
    expect([...message.reactions]).toEqual([[server.account.uuid, '🎉']]);
    await react('DELETE', {});
    expect(message.reactions.size).toBe(0);
    expect((await react('POST', { reaction: '👍', timestamp: 5 })).status).toBe(204);
    expect(why()[1]).toContain('no such message there');
  });

  it('records read receipts and typing', async () => {
    const message = server.people.writes({ from: bob, to: team, text: 'hi' });
    const receipt = (receipt_type: string, timestamp: number | string = message.timestamp) =>
      call('POST', `/v1/receipts/${server.number}`, { recipient: bob.uuid, receipt_type, timestamp });
    expect((await receipt('read')).status).toBe(204);
    expect((await receipt('delivery')).status).toBe(400);
    expect((await receipt('read', String(message.timestamp))).type).toContain('text/plain');
    expect([...message.readBy]).toEqual([server.account.uuid]);
    for (const method of ['PUT', 'DELETE'])
      expect(
        (await call(method, `/v1/typing-indicator/${server.number}`, { recipient: team.id })).status,
      ).toBe(204);
    expect(server.platform.typing).toMatchObject([
      { place: { group: team }, isOn: true },
      { place: { group: team }, isOn: false },
    ]);
  });
});

describe('receiving', () => {
  const socketUrl = () =>
    `${server.url.replace('http', 'ws')}/v1/receive/${encodeURIComponent(server.number)}`;

  it('refuses a plain GET of a socket, and closes a socket whose client says too much', async () => {
    const plain = await fetch(socketUrl().replace('ws', 'http'));
    expect(plain.status).toBe(400);
    expect(plain.headers.get('content-type')).toContain('text/plain');
    expect(await plain.text()).toMatch(/^Bad Request\n\{"error":"websocket: the client is not using/);
    const socket = new WebSocket(socketUrl());
    await once(socket, 'open');
    socket.send('x'.repeat(512));
    socket.send('x'.repeat(513));
    const [code] = await once(socket, 'close');
    expect(code).toBe(1009);
    expect(why()).toEqual([
      expect.stringContaining('not using the websocket protocol'),
      expect.stringContaining('Max payload size exceeded'),
    ]);
  });

  it('has no webhook where signal-cli runs once per call', async () => {
    await begin({ mode: 'normal' });
    expect(() => {
      server.webhookUrl = 'http://127.0.0.1:1/';
    }).toThrow('does not start with a webhook');
  });

  describe.each(['normal', 'native'] as const)('in mode %s', (mode) => {
    it('refuses a poll with parameters that it cannot read', async () => {
      await begin({ mode });
      for (const query of ['timeout=soon', 'max_messages=all', 'ignore_stories=yes'])
        expect((await call('GET', `/v1/receive/${server.number}?${query}`)).status).toBe(400);
      expect((await call('GET', '/v1/receive/+1')).status).toBe(400);
    });

    it('treats a handshake for a socket as a poll, which takes the messages', async () => {
      await begin({ mode });
      server.people.writes({ from: ada, text: 'eaten' });
      const socket = new WebSocket(`${socketUrl()}?timeout=0`);
      const [error] = await once(socket, 'error');
      expect(String(error)).toContain('Unexpected server response: 200');
      expect((await call('GET', `/v1/receive/${server.number}?timeout=0`)).text).toBe('[]');
      expect(server.refusals).toMatchObject([{ status: 200 }]);
    });
  });
});
