/** The test server must refuse what signal-cli-rest-api refuses, or the tests that rely on it prove nothing. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
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
  it.each(['json-rpc', 'normal', 'native'] as const)('is its mode: %s', async (mode) => {
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

  it('and its configuration', async () => {
    expect(await call('POST', '/v1/configuration', { logging: { Level: 'debug' } })).toMatchObject({
      status: 204,
    });
    expect((await call('GET', '/v1/configuration')).json()).toEqual({ logging: { Level: 'debug' } });
    expect((await call('POST', '/v1/configuration', { logging: { Level: 'loud' } })).status).toBe(400);
  });

  it('is a page of 404 for what it does not know', async () => {
    expect(await call('GET', '/v1/cake')).toMatchObject({ status: 404, text: '404 page not found' });
  });
});

describe('sends', () => {
  it('go to uuids, numbers, usernames and groups, and are answered with the timestamp as text', async () => {
    for (const recipient of [ada.uuid, bob.number, 'bob.42', team.id]) {
      const answer = await send({ recipients: [recipient] });
      expect(answer).toMatchObject({ status: 201, type: 'application/json; charset=utf-8' });
      expect(answer.json()).toEqual({ timestamp: expect.stringMatching(/^\d{13}$/) });
    }
    expect(server.lines(ada)).toEqual(['Parley: hello']);
    expect(server.lines(bob)).toEqual(['Parley: hello', 'Parley: hello']);
    expect(server.lines(team)).toEqual(['Parley: hello']);
    expect(server.refusals).toEqual([]);
  });

  it('are answered with an array by the newer release, which names who was not reached', async () => {
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
  ])('with %s are refused', async (_, body, error) => {
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
  ])('with %s are refused as JSON that is called plain text', async (_, body) => {
    const answer = await (typeof body === 'string' ? call('POST', '/v2/send', body) : send(body));
    expect(answer).toMatchObject({ status: 400, type: 'text/plain; charset=utf-8' });
    expect(answer.json()).toEqual({ error: "Couldn't process request - invalid request" });
  });

  it('to groups one is not in, or may only read, are refused', async () => {
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

  it("to a group's id as messages carry it are accepted and reach nobody", async () => {
    expect(await send({ recipients: [team.internalId] })).toMatchObject({ status: 201 });
    expect(server.lines(team)).toEqual([]);
    expect(why()).toEqual([`${team.internalId} is nobody here (taken for a username)`]);
    expect(server.refusals[0]?.status).toBe(201);
  });

  it('carry styles, mentions and files', async () => {
    const message = '**\uFFFC** looks at \\*this\\*';
    const mentions = [{ start: 0, length: 1, author: ada.uuid }];
    const files = ['data:text/plain;filename=a.txt;base64,aGk=', 'data:image/png;base64,aGk=', 'aGk='];
    await send({ recipients: [team.id], message, mentions, text_mode: 'styled', base64_attachments: files });
    expect(server.lines(team)).toEqual([
      'Parley: <b>@Ada</b> looks at *this* [a.txt] [image/png] [application/octet-stream]',
    ]);
    expect(server.refusals).toEqual([]);
  });

  it('with markers that vanish, mentions beside the text and unknown quotes are noted', async () => {
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

  it('are rate limited with 429, delivered or not, and with an empty token', async () => {
    server.fault({ kind: 'rate-limit', tokens: [''], isDelivered: true }, { path: '/v2/send' });
    const answer = await send({ recipients: [ada.uuid] });
    expect(answer.status).toBe(429);
    expect(answer.json()).toMatchObject({ challenge_tokens: [''], account: server.number });
    expect(answer.json().error).toContain('Failed to send message due to rate limiting');
    expect(server.lines(ada)).toEqual(['Parley: hello']);
    expect(server.refusals).toEqual([]);
  });

  it('are rate limited in prose where signal-cli is run for each', async () => {
    await begin({ mode: 'native' });
    server.fault({ kind: 'rate-limit', tokens: [''] });
    expect((await send({ recipients: [ada.uuid] })).status).toBe(400);
    expect(server.lines(ada)).toEqual([]);
  });

  it('wait for a captcha', async () => {
    server.challenge('tok-1', 'tok-2');
    const solve = (challenge_token: string, captcha: string) =>
      call('POST', `/v1/accounts/${server.number}/rate-limit-challenge`, { challenge_token, captcha });
    expect((await send({ recipients: [ada.uuid] })).json().challenge_tokens).toEqual(['tok-1', 'tok-2']);
    expect((await solve('tok-3', 'signalcaptcha://x')).status).toBe(400);
    expect((await solve('tok-1', 'x')).status).toBe(400);
    expect((await solve('tok-1', 'signalcaptcha://x')).status).toBe(204);
    expect((await send({ recipients: [ada.uuid] })).status).toBe(201);
  });
});

describe('what stands in a conversation', () => {
  it('is edited under the timestamp of the original', async () => {
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

  it('is deleted by its author only', async () => {
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

  it('has one reaction of everybody, and a reaction to nothing is noted', async () => {
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

  it('is read by receipts, and typing is shown', async () => {
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

describe('files, groups and people', () => {
  it('are listed, fetched with the type of their bytes, and deleted', async () => {
    const bytes = Buffer.from('89504e470d0a1a0a', 'hex');
    const file = server.world.addAttachment({ bytes, fileName: 'a.png', contentType: 'application/pdf' });
    expect((await call('GET', '/v1/attachments')).json()).toEqual([file.id]);
    const answer = await fetch(`${server.url}/v1/attachments/${file.id}`);
    expect(answer.headers.get('content-type')).toBe('image/png');
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(bytes);
    expect((await call('DELETE', `/v1/attachments/${file.id}`)).status).toBe(204);
    expect(await call('GET', `/v1/attachments/${file.id}`)).toMatchObject({
      status: 404,
      text: '{"error":"No attachment with that name found"}',
    });
  });

  it('say who is in a group, by number where it is known', async () => {
    const group = {
      id: `group.${Buffer.from(team.internalId).toString('base64')}`,
      internal_id: team.internalId,
      members: [ada.uuid, bob.number, server.number],
      admins: [ada.uuid],
      member: true,
    };
    expect(JSON.parse((await call('GET', `/v1/groups/${server.number}`)).text)).toMatchObject([group]);
    const one = `/v1/groups/${server.number}/${encodeURIComponent(team.id)}`;
    expect((await call('GET', one)).json()).toMatchObject(group);
    expect((await call('GET', `${one}?expand=true`)).json().members).toContainEqual({
      number: '',
      uuid: ada.uuid,
    });
    expect((await call('GET', `/v1/groups/${server.number}/group.bm9uZQ==`)).status).toBe(404);
  });

  it('have names, and timers', async () => {
    const contacts = JSON.parse((await call('GET', `/v1/contacts/${server.number}`)).text) as unknown;
    expect(contacts).toMatchObject([
      { uuid: ada.uuid, number: '', profile_name: 'Ada' },
      { number: bob.number },
    ]);
    const timer = { recipient: ada.uuid, expiration_in_seconds: 60 };
    expect((await call('PUT', `/v1/contacts/${server.number}`, timer)).status).toBe(204);
    expect(server.people.writes({ from: ada, text: 'hi' }).expiresInSeconds).toBe(60);
    expect((await call('PUT', `/v1/profiles/${server.number}`, { name: 'Otto' })).status).toBe(204);
    expect(server.account.name).toBe('Otto');
  });

  it('are linked by a URI that is used later', async () => {
    await begin({ isUnlinked: false });
    await server.close();
    server = await startSignalServer({ isUnlinked: true });
    expect((await call('GET', '/v1/accounts')).json()).toEqual([]);
    expect((await call('GET', '/v1/qrcodelink/raw')).status).toBe(400);
    const { device_link_uri: uri } = (await call('GET', '/v1/qrcodelink/raw?device_name=Parley')).json();
    expect(uri).toMatch(/^sgnl:\/\/linkdevice\?uuid=.+&pub_key=.+$/);
    expect(await call('GET', '/v1/qrcodelink?device_name=Parley')).toMatchObject({
      status: 200,
      type: 'image/png',
    });
    server.finishLink({ number: '+15550000009' });
    expect((await call('GET', '/v1/accounts')).json()).toEqual(['+15550000009']);
    expect(() => server.finishLink({ number: '+15550000010' })).toThrow('no link waits');
  });
});
