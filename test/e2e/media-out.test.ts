/** Files that the agent sends, through the gateway: albums, captions, what a network refuses, and a crash between. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { blocksOf, type WireBody } from '../platforms/anthropic/wire.ts';
import { anOggOpus } from '../support/ogg-opus.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { discordOf } from './discord-side.ts';
import { signalOf } from './signal-side.ts';
import { openStage, type StageNetwork } from './stage.ts';
import { until } from './until.ts';

const png = '\x89PNG\r\n\x1a\n';
const files = {
  'a.png': png,
  'b.png': png,
  'plan.txt': 'a plan',
  'bad.txt': 'unfit file',
  'hello.ogg': anOggOpus([40, 60, 50]),
};

async function aStage(...networks: readonly StageNetwork[]) {
  const stage = await openStage({ networks }, onTestFinished);
  const workspace = join(stage.dataDir, 'workspace');
  await mkdir(workspace, { recursive: true });
  for (const [name, bytes] of Object.entries(files)) await writeFile(join(workspace, name), bytes, 'latin1');
  // Only the owner may have files of the workspace sent.
  const owners = [
    'telegram:501',
    ...(stage.discord ? [`discord:${discordOf(stage).user(501).id}`] : []),
    ...(stage.signal ? [`signal:${signalOf(stage).user(501).uuid}`] : []),
  ];
  const env = { PARLEY_OWNERS: owners.join() };
  return {
    ...stage,
    start: (options: { readonly killAt?: string } = {}) => stage.start({ ...options, env }),
  };
}

const resultsIn = (body: WireBody | undefined) =>
  (body?.messages ?? []).flatMap(blocksOf).flatMap((block) => {
    const { type, content } = block as { type: string; content?: readonly { readonly text?: string }[] };
    return type === 'tool_result' ? [content?.map(({ text }) => text).join('') ?? ''] : [];
  });

/** Calls the tool once, then answers. */
function once(name: string, input: object, text: string) {
  return (body: WireBody) => (resultsIn(body).length === 0 ? { toolCalls: [{ name, input }] } : { text });
}

const sendsAll = once('message', { text: 'Here', files: ['a.png', 'plan.txt', 'b.png'] }, 'NO_REPLY');

test('sends an album and a document on Telegram, and one message on Discord and Signal', async () => {
  const stage = await aStage('discord', 'signal');
  stage.model.script(sendsAll);
  await stage.start();
  const people = (['telegram', 'discord', 'signal'] as const).map((channel) => stage.person(channel));
  for (const person of people) person.says('Send them.');
  await untilAtRest(stage.dataDir, 3);

  const shown = stage.telegram.botMessages(501);
  expect(shown.map(({ text, file }) => [text, file?.name])).toEqual([
    ['Here', 'a.png'],
    ['', 'b.png'],
    ['', 'plan.txt'],
  ]);
  expect(shown.map(({ message }) => message.media_group_id !== undefined)).toEqual([true, true, false]);
  const { server: discord, user } = discordOf(stage);
  const names = ['a.png', 'plan.txt', 'b.png'];
  const onDiscord = discord.botMessages(discord.world.dmWith(user(501)).id);
  expect(onDiscord.map(({ text, files: sent }) => [text, sent.map(({ name }) => name)])).toEqual([
    ['Here', names],
  ]);
  const { server: signal, user: signalUser } = signalOf(stage);
  const onSignal = signal.botMessages(signalUser(501));
  expect(
    onSignal.map(({ text, attachments }) => [text, attachments.map(({ fileName }) => fileName)]),
  ).toEqual([['Here', names]]);
  // Each id of the album leads to its part, and the model knows them all.
  const ids = shown.map(({ messageId }) => String(messageId));
  const known = readStore(
    stage.dataDir,
    `select messageId from receipts where conversationKey like 'telegram/%'`,
  );
  expect(known.map(({ messageId }) => messageId).sort()).toEqual(ids);
  const told = stage.model.requests.map(({ body }) => resultsIn(body).join(''));
  expect(told).toContain(`Sent as messages ${ids.join(', ')}.`);
  expect(findBreaches(stage.dataDir)).toEqual([]);
});

test('makes a short answer the caption of the files that a tool has attached', async () => {
  const stage = await aStage();
  stage.model.script(once('attach', { files: ['a.png', 'b.png'] }, 'Your **charts**'));
  await stage.start();
  stage.person('telegram').says('Draw.');
  await untilAtRest(stage.dataDir, 1);
  expect(stage.telegram.botMessages(501)).toMatchObject([
    { text: 'Your charts', entities: [{ type: 'bold' }], file: { name: 'a.png' } },
    { text: '', file: { name: 'b.png' } },
  ]);
  expect(findBreaches(stage.dataDir)).toEqual([]);
});

test('sends an album once, after the wait that Telegram asks for', async () => {
  const stage = await aStage();
  const [method, parameters] = ['sendMediaGroup', { retry_after: 1 }];
  stage.telegram.fault(
    { kind: 'refuse', code: 429, description: 'Too Many Requests', parameters },
    { method },
  );
  stage.model.script(sendsAll);
  await stage.start();
  stage.person('telegram').says('Send them.');
  await untilAtRest(stage.dataDir, 1);
  expect(stage.telegram.botMessages(501)).toHaveLength(3);
  expect(stage.telegram.sent.filter((call) => call.method === method)).toHaveLength(2);
});

test('loses only the bad file of an album, and tells the model', async () => {
  const stage = await aStage();
  const input = { text: 'Here', files: ['bad.txt', 'plan.txt'] };
  stage.model.script(once('message', input, 'One of them failed.'));
  await stage.start();
  stage.person('telegram').says('Send them.');
  await untilAtRest(stage.dataDir, 1);
  const shown = stage.telegram.botMessages(501);
  expect(shown.map(({ text, file }) => [text, file?.name])).toEqual([
    ['', 'plan.txt'],
    ['One of them failed.', undefined],
  ]);
  expect(resultsIn(stage.model.requests.at(-1)?.body)[0]).toContain('(1 of 2 messages)');
  expect(findBreaches(stage.dataDir)).toEqual([]);
});

test('sends a voice message on Telegram and Discord, and a file on Signal', async () => {
  const stage = await aStage('discord', 'signal');
  stage.model.script(once('message', { text: 'Listen', files: ['hello.ogg'], asVoice: true }, 'NO_REPLY'));
  await stage.start();
  for (const channel of ['telegram', 'discord', 'signal'] as const) stage.person(channel).says('Speak.');
  await untilAtRest(stage.dataDir, 3);
  const [onTelegram] = stage.telegram.botMessages(501);
  expect([onTelegram?.text, onTelegram?.message.voice]).toEqual(['Listen', expect.anything()]);
  const { server: discord, user } = discordOf(stage);
  expect(discord.botMessages(discord.world.dmWith(user(501)).id)).toMatchObject([
    { text: 'Listen', files: [] },
    { text: '', flags: 8192, files: [{ fields: { duration_secs: 0.06 } }] },
  ]);
  const { server: signal, user: signalUser } = signalOf(stage);
  expect(signal.botMessages(signalUser(501))).toMatchObject([
    { text: 'Listen', attachments: [{ fileName: 'hello.ogg' }] },
  ]);
  const told = stage.model.requests.map(({ body }) => resultsIn(body).join('')).join(' ');
  expect(told).toContain('this network takes no voice messages from me');
});

test('never sends an album twice, killed between its send and the record of it', async () => {
  const stage = await aStage();
  stage.model.script(once('message', { text: 'Here', files: ['a.png', 'b.png'] }, 'They may have arrived.'));
  const first = await stage.start({ killAt: 'sent-not-marked:1' });
  const person = stage.person('telegram');
  person.says('Send them.');
  await first.ended;
  await stage.start();
  await until(() => person.standing().includes('They may have arrived.'), { what: 'the answer' });
  await untilAtRest(stage.dataDir, 1);
  expect(stage.telegram.botMessages(501).map(({ file }) => file?.name)).toEqual([
    'a.png',
    'b.png',
    undefined,
  ]);
  expect(resultsIn(stage.model.requests.at(-1)?.body)[0]).toContain('whether it arrived is not known');
  const album = readStore(stage.dataDir, "select state, receipts from outbox where purpose = 'tool'");
  expect(album).toEqual([{ state: 'unknown', receipts: null }]);
  expect(findBreaches(stage.dataDir)).toEqual([]);
});
