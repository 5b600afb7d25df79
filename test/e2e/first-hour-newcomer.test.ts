/**
 * From an empty folder to a bot on three networks, with no settings but those that onboarding wrote. The addresses of
 * the local platforms replace the built-in ones.
 */
import { randomUUID } from 'node:crypto';
import { appendFile, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { FrameClient } from '../channels/frame-client.ts';
import { openWebSocket } from '../channels/frame-transports.ts';
import { keys, typeTo } from '../cli/typed-answers.ts';
import { createGate } from '../platforms/anthropic/gate.ts';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import { startTelegramServer, type TelegramServer } from '../platforms/telegram/server.ts';
import { pathOf, send } from '../server/a-server.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { type DiscordSide, openDiscordSide } from './discord-side.ts';
import { anEmptyHome, type Home, type Running } from './fresh-home.ts';
import { untilTold } from './linking.ts';
import { discordTown, signalTown, type Town, telegramTown } from './newcomer-networks.ts';
import { openSignalSide, type SignalSide } from './signal-side.ts';
import { bob, eve, said, untilSaid, untilWriting } from './telegram-chat.ts';
import { until } from './until.ts';

const { enter, down, leave } = keys;
const key = 'sk-ant-api03-0000000001';
const carl = { id: 503, is_bot: false, first_name: 'Carl' };
const slow = { timeout: 300_000 };

let ends: (() => Promise<void>)[] = [];
let model: AnthropicServer;
let telegram: TelegramServer;
let discord: DiscordSide;
let signal: SignalSide;
let addresses: Readonly<Record<string, string>>;
let home: Home;
let gateway: Running;
let onDiscord: Town;
let onSignal: Town;
beforeAll(async () => {
  [model, telegram, signal] = await Promise.all([
    startAnthropicServer({ keys: [key] }),
    startTelegramServer(),
    openSignalSide(),
  ]);
  discord = await openDiscordSide('/nowhere');
  for (const platform of [model, telegram, signal, discord]) ends.push(() => platform.close());
  [onDiscord, onSignal] = [discordTown(discord), signalTown(signal)];
  addresses = {
    PARLEY_PORT: '0',
    ANTHROPIC_BASE_URL: model.url,
    TELEGRAM_API_ROOT: telegram.apiRoot,
    DISCORD_API_BASE: discord.server.apiUrl,
  };
  home = await anEmptyHome(addresses, (end) => ends.push(end));
});
afterAll(async () => {
  for (const end of ends.reverse()) await end();
  ends = [];
});

const onboard = () =>
  typeTo(['onboard'], {
    cwd: home.path,
    env: { ...addresses, PARLEY_TEST_HOME: home.path },
    atEnd: onTestFinished,
  });
const fileOf = (name: string) => readFile(join(home.path, name), 'utf8');
const codeIn = (chat: number, nth = 0) => {
  const notice = /^I don’t know you yet[\s\S]*(?:code|approve) ([A-Z2-9]{8})/;
  return telegram.waitFor(() => said(telegram, chat).flatMap((text) => notice.exec(text)?.[1] ?? [])[nth]);
};
const buttonsIn = (chat: number) =>
  telegram.messages(chat).flatMap(({ message }) => message.reply_markup?.inline_keyboard.flat() ?? []);

describe("the newcomer's first hour", () => {
  test('changes nothing if the person quits the questions', slow, async () => {
    const person = onboard();
    await person.answer('Which model answers?', enter);
    await person.answer(/◆ +Anthropic API key/, `${key}${enter}`);
    await person.answer('Which network', leave);
    expect(await person.ended).toBe(1);
    expect(person.shown()).toContain('Nothing was changed.');
    expect(await readdir(home.path)).toEqual([]);
  });

  test('checks each credential as it is typed, and writes the answers', slow, async () => {
    const person = onboard();
    await person.answer('Which model answers?', enter);
    await person.answer(/◆ +Anthropic API key/, `sk-ant-wrong-one${enter}`);
    await person.answer('rejects it: 401 invalid x-api-key', '');
    await person.answer('Type it again', enter);
    await person.answer(/◆ +Anthropic API key/, `${key}${enter}`);
    await person.answer('accepts it.', '');
    await person.answer('Which network', enter);
    await person.answer('Bot token', `${telegram.token}${enter}`);
    await person.answer('signed in as', '');
    await person.answer('Who is the owner', enter);
    await person.answer('Which groups', enter);
    expect(await person.ended).toBe(0);

    expect(person.shown()).toContain(join(home.path, 'parley.config.json'));
    expect(person.shown()).toContain('npm start');
    expect(person.shown()).toContain('pair approve <code> makes you its owner');
    for (const secret of [key, telegram.token]) expect(person.shown()).not.toContain(secret);
    expect(JSON.parse(await fileOf('parley.config.json'))).toEqual({
      model: 'anthropic/claude-sonnet-5-5',
      // The address that the key was tested with.
      providers: { anthropic: { baseUrl: model.url } },
      access: { groupPolicy: 'allowlist' },
    });
    expect(await fileOf('.env')).toBe(`ANTHROPIC_API_KEY=${key}\nTELEGRAM_BOT_TOKEN=${telegram.token}\n`);
    expect((await stat(join(home.path, '.env'))).mode & 0o777).toBe(0o600);
    expect(model.requests).toEqual([]);
    expect(telegram.calls.filter(({ method }) => method !== 'getMe')).toEqual([]);
  });

  test(
    'makes the first stranger the owner by a command on the host, answers their message, and asks them from then on',
    slow,
    async () => {
      gateway = await home.start();
      telegram.userSends({ from: eve, text: '/start' });
      telegram.userSends({ from: eve, text: 'Hello?' });
      expect((await home.parley('pair', 'approve', await codeIn(eve.id))).stdout).toBe(
        'telegram:666 “Eve” can write now, as the owner.\n',
      );
      // The gateway keeps running and picks up what the command line has written.
      await untilSaid(telegram, { chat: eve.id, text: /^You’re my owner now/ });
      await untilSaid(telegram, { chat: eve.id, text: 'You said: Hello?' });

      telegram.userSends({ from: bob, text: 'Me too?' });
      const code = await codeIn(bob.id);
      // Forwarded, the command is somebody else's text; and the step that lets him in names him first.
      const forward_origin = { type: 'user', sender_user: bob, date: 1 };
      telegram.userSends({ from: eve, text: `/pair approve ${code}`, fields: { forward_origin } });
      const isAnswered = () =>
        said(telegram, eve.id).filter((text) => text.startsWith('You said: ')).length === 2;
      await until(isAnswered, { what: 'an answer to the forward' });
      telegram.userSends({ from: eve, text: `/pair confirm ${code}` });
      await untilSaid(telegram, { chat: eve.id, text: /^There’s nothing to confirm here\./ });
      telegram.userSends({ from: eve, text: `/pair approve ${code}` });
      await untilSaid(telegram, { chat: eve.id, text: /^telegram:502 “Bob” is asking for access/ });
      await telegram.waitFor(() => buttonsIn(eve.id)[0]);
    },
  );

  test('adds networks and their owners to an existing setup', slow, async () => {
    await appendFile(join(home.path, '.env'), '# mine\n');
    const towns = [onDiscord, onSignal];
    for (const { name, ownerId } of towns) {
      const person = onboard();
      await person.answer('Keep anthropic', enter);
      await person.answer('Which network', `${down.repeat(name === 'discord' ? 1 : 2)}${enter}`);
      if (name === 'discord') await person.answer('Bot token', `${discord.server.token}${enter}`);
      else {
        await person.answer('Its address', `${signal.server.url}${enter}`);
        await person.answer('Phone number of the account', enter);
      }
      await person.answer('signed in as', '');
      await person.answer('Who is the owner', `${down}${enter}`);
      await person.answer('Your permanent id', `@ada${enter}`);
      await person.answer(/Names can\s+change hands/, `${'\u007f'.repeat(4)}${ownerId}${enter}`);
      await person.answer('Which groups', enter);
      expect(await person.ended).toBe(0);
      expect(person.shown()).toContain('Restart Parley to use it. Then write to your bot.');
    }
    expect(JSON.parse(await fileOf('parley.config.json'))).toEqual({
      model: 'anthropic/claude-sonnet-5-5',
      // The address that the key was tested with.
      providers: { anthropic: { baseUrl: model.url } },
      owners: towns.map(({ name, ownerId }) => `${name}:${ownerId}`),
      access: { groupPolicy: 'allowlist' },
    });
    const lines = (await fileOf('.env')).split('\n');
    expect(lines.slice(0, 5)).toEqual([
      `ANTHROPIC_API_KEY=${key}`,
      `TELEGRAM_BOT_TOKEN=${telegram.token}`,
      '# mine',
      `DISCORD_BOT_TOKEN=${discord.server.token}`,
      `SIGNAL_API_URL=${signal.server.url}`,
    ]);
    expect(lines.slice(5)).toEqual([expect.stringMatching(/^SIGNAL_WEBHOOK_SECRET=[0-9a-f]{48}$/), '']);
  });

  test('lets strangers in by a button or by the command in its text, and answers them', slow, async () => {
    // The button is stored, so it works after a restart.
    const [{ callback_data: pressed = '' } = {}] = buttonsIn(eve.id);
    await gateway.kill();
    gateway = await home.start();
    const [, secret] = /^SIGNAL_WEBHOOK_SECRET=(\w+)$/m.exec(await fileOf('.env')) ?? [];
    signal.server.webhookUrl = `${gateway.url}/channels/signal/webhook/${secret}`;
    const query = telegram.people.pressesButton({ chat: eve.id, from: eve, label: 'Approve' });
    const letIn = 'telegram:502 “Bob” may write to me now. Approved by telegram:666 “Eve”.';
    await untilSaid(telegram, { chat: eve.id, text: letIn });
    const { answeredCallbacks } = telegram.platform;
    await until(() => answeredCallbacks.length === 1, { what: 'an answer to the press' });
    expect(answeredCallbacks).toEqual([{ id: query, text: letIn }]);
    expect(buttonsIn(eve.id)).toEqual([]);
    await untilSaid(telegram, { chat: bob.id, text: 'You said: Me too?' });
    // He presses the owner's button himself: it is gone, and the refusal is shown to him alone.
    const [asked] = telegram.botMessages(eve.id).filter(({ text }) => text === letIn);
    telegram.people.presses({ chat: eve.id, from: bob, messageId: asked?.messageId ?? 0, data: pressed });
    await until(() => answeredCallbacks.length === 2, { what: 'an answer to his press' });
    expect(answeredCallbacks.at(-1)?.text).toBe('Already approved by telegram:666 “Eve”.');

    for (const { name, owner, stranger, answers } of [onDiscord, onSignal]) {
      owner.says(`It is me on ${name}`);
      await untilTold(owner, new RegExp(`^You said: It is me on ${name}`));
      stranger.says(`Hello on ${name}`);
      await untilTold(owner, /is asking to write to me/);
      await untilTold(stranger, /^I don’t know you yet, so I’ve asked my owner/);
      answers('Approve', 'direct');
      await untilTold(owner, /may write to me now\. Approved by .*4711/);
      await untilTold(stranger, new RegExp(`^You said: Hello on ${name}`));
    }
  });

  test(
    'signs a browser in with a new link, once, and lets the next stranger in from the page',
    slow,
    async () => {
      const { stdout } = await home.parley('signin');
      expect(stdout).toContain('PARLEY_HOST=0.0.0.0');
      const [link = ''] = /http:\/\/\S+/.exec(stdout) ?? [];
      const port = Number(new URL(link).port);
      const visit = () => send({ port, path: pathOf(link) });
      const cookie = String((await visit()).headers['set-cookie']).split(';')[0] ?? '';
      expect((await visit()).headers.location).toBe('/#link-not-valid');

      telegram.userSends({ from: carl, text: 'And me?' });
      await codeIn(carl.id);
      const asked = JSON.parse((await send({ port, path: '/api/notices', headers: { cookie } })).body);
      expect(asked.questions).toEqual([
        expect.objectContaining({ text: expect.stringMatching(/^telegram:503 “Carl” is asking/) }),
      ]);
      const headers = { cookie, origin: gateway.url, 'content-type': 'application/json', 'x-parley': '1' };
      const body = JSON.stringify({ id: asked.questions[0].id, verdict: 'approve' });
      const answer = await send({ port, method: 'POST', path: '/api/notices/answer', headers, body });
      expect(JSON.parse(answer.body)).toMatchObject({ result: 'approved' });
      await untilSaid(telegram, { chat: carl.id, text: 'You said: And me?' });

      // A file for the page, the trace of a message, and a message that may not have arrived.
      const upload = { ...headers, 'content-type': 'application/octet-stream' };
      const file = { method: 'POST', headers: upload, body: 'The answer is 42.' };
      const { id: ref } = JSON.parse((await send({ port, path: '/uploads/web', ...file })).body);
      const page = new FrameClient(() => openWebSocket(gateway.url, cookie));
      onTestFinished(() => page.close());
      const attachments = [{ ref, name: 'note.txt', mimeType: 'text/plain', sizeBytes: file.body.length }];
      const id = page.submit({ type: 'send', id: randomUUID(), text: 'Read this.', attachments });
      await until(() => page.items.some(({ text }) => /^You said: [\s\S]*Read this\./.test(text)), {
        what: 'an answer on the page',
      });
      const [row] = readStore(home.dataDir, `select content from inbox where content like '%note.txt%'`);
      const [kept] = JSON.parse(String(row?.content)).stored;
      expect(await readFile(join(home.dataDir, 'media', kept.path), 'utf8')).toBe(file.body);
      const read = async (path: string) => JSON.parse((await send({ port, path, headers: { cookie } })).body);
      expect((await read(`/api/why?id=${id}`)).text).toContain('answered');
      telegram.fault({ kind: 'drop-answer' }, { method: 'sendMessage' });
      telegram.userSends({ from: carl, text: 'And now?' });
      const parts = async () => (await read('/api/outbox')).parts;
      await until(async () => (await parts()).length === 1, { what: 'the lost answer in the list' });
      const drop = { method: 'POST', headers, body: JSON.stringify({ key: (await parts())[0].key }) };
      expect((await send({ port, path: '/api/outbox/drop', ...drop })).status).toBe(200);
      expect(await parts()).toMatchObject([{ state: 'failed', problem: 'dropped by the operator' }]);
    },
  );

  test('asks the owner who adds the bot to a group whether to answer there', slow, async () => {
    const towns = [telegramTown(telegram, [eve, bob]), onDiscord, onSignal];
    for (const town of towns) town.group.begins();
    for (const { group, answers } of towns) {
      await untilTold(group, /^I don’t answer in this group yet\./);
      answers('Answer here', 'group');
      await untilTold(group, /^I now answer here when I’m mentioned\./);
      group.asks('Who is there?');
      await untilTold(group, /^You said: [\s\S]*Who is there\?/);
    }
  });

  test("cancels a person's messages once the owner revokes their access", slow, async () => {
    const gate = createGate();
    onTestFinished(async () => gate.open());
    const story = 'Tell me a story.';
    model.script((request) =>
      lastUserText(request).includes(story)
        ? { chunks: ['A long ', 'answer.'], hold: { gate, afterChunks: 1 } }
        : { text: 'Something else.' },
    );
    telegram.userSends({ from: bob, text: story });
    await untilWriting(telegram, bob.id);
    telegram.userSends({ from: bob, text: 'A long one.' });
    const waits = () =>
      readStore(home.dataDir, `select 1 from inbox where state = 'waiting' and senderId = '502'`).length ===
      1;
    await until(waits, { what: 'the second message' });
    telegram.userSends({ from: eve, text: '/pair revoke telegram:502' });
    await untilSaid(telegram, { chat: eve.id, text: 'telegram:502 may no longer write to me.' });
    telegram.userSends({ from: bob, text: 'Hello?' });
    await codeIn(bob.id, 1);
    await untilAtRest(home.dataDir, 1);

    const ofBob = readStore(
      home.dataDir,
      `select outcome from inbox where senderId = '502' and kind = 'message' order by seq`,
    );
    expect(ofBob.map(({ outcome }) => outcome)).toEqual(['answered', 'answered', 'cancelled', 'refused']);
    expect(model.requests.filter(({ body }) => lastUserText(body).includes('A long one.'))).toEqual([]);
    expect(said(telegram, bob.id).join()).not.toContain('A long');
    const refused = readStore(
      home.dataDir,
      `select reason, count(*) as times from ledger where outcome = 'refused' group by reason order by reason`,
    );
    // Her /start and his last message; the ones that opened the other requests were kept and accepted.
    expect(refused).toEqual([
      { reason: 'dm-not-paired', times: 2 },
      { reason: 'group-not-allowed', times: 3 },
    ]);
    expect(findBreaches(home.dataDir)).toEqual([]);
  });
});
