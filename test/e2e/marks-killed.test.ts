/** Marks on three networks whose gateway is killed twice, and what a network that refuses them changes: nothing. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createGate } from '../platforms/anthropic/gate.ts';
import { aFolder } from '../support/own-folder.ts';
import { findBreaches, untilAtRest } from './conservation.ts';
import { discordOf } from './discord-side.ts';
import { databaseServer, makeDatabase } from './own-database.ts';
import { loadable } from './parley-process.ts';
import { signalOf } from './signal-side.ts';
import { openStage, type Stage } from './stage.ts';
import { ada, said, untilSaid } from './telegram-chat.ts';
import { until } from './until.ts';

const networks = ['telegram', 'discord', 'signal'] as const;

/** Returns the bot's reactions to the message with this text, on each network. */
function reactionsTo(stage: Stage, text: string): readonly (readonly string[])[] {
  const { telegram } = stage;
  const { server: discord, user } = discordOf(stage);
  const { server: signal, user: signalUser } = signalOf(stage);
  const onTelegram = telegram.messages(501).find((one) => one.text === text)?.botReaction;
  const dm = discord.messages(discord.world.dmWith(user(501)).id).find((one) => one.text === text);
  const onSignal = signal.messages(signalUser(501)).find((one) => one.text === text);
  const own = onSignal?.reactions.get(signal.account.uuid);
  return [
    onTelegram === undefined ? [] : [onTelegram],
    [...(dm?.reactions ?? [])].filter(([, users]) => users.has(discord.bot.id)).map(([emoji]) => emoji),
    own === undefined ? [] : [own],
  ].map((emojis) => emojis.map((emoji) => emoji.replace('\ufe0f', '')));
}

/** Returns the settings of a tool that works until `go` is called, and how often it has begun. */
function aSlowTool() {
  const folder = aFolder();
  const [EFFECTS_FILE, GO_FILE] = [join(folder, 'effects'), join(folder, 'go')];
  const begun = () =>
    existsSync(EFFECTS_FILE) ? readFileSync(EFFECTS_FILE, 'utf8').trim().split('\n').length : 0;
  const go = () => writeFileSync(GO_FILE, '');
  return { env: { TEST_PLUGIN: loadable('slow-tool'), EFFECTS_FILE, GO_FILE }, begun, go };
}

const slow = { toolCalls: [{ name: 'slow', input: {} }] };

it('shows what became of a message across two kills, one reaction at a time, and none at the end', async () => {
  const { env, begun } = aSlowTool();
  const config = { queue: { waitingNotice: { afterMs: 500 } }, run: { maxAttempts: 10 } };
  const stage = await openStage({ config, env, networks: ['discord', 'signal'] }, onTestFinished);
  const { model, dataDir } = stage;
  const people = networks.map((network) => stage.person(network, 501));
  const gate = createGate();
  const seen = new Set<string>();
  const untilShown = (emoji: string) =>
    until(
      () => {
        const shown = reactionsTo(stage, 'second');
        seen.add(shown.map((one) => one.length).join());
        return shown.every((one) => one.join() === emoji);
      },
      { what: `“${emoji}” on each network` },
    );

  model.script(() => slow);
  await stage.start();
  for (const person of people) person.says('first');
  await until(() => begun() === 3, { what: 'each tool works' });
  for (const person of people) person.says('second');
  await untilShown('👀');
  await stage.parley().kill();

  model.script(() => ({ text: 'Done.', hold: { gate } }));
  await stage.start();
  await untilShown('✍');
  await stage.parley().kill();
  gate.open();

  await stage.start();
  await until(() => people.every((person) => person.standing().includes('Done.')), { what: 'the answers' });
  await untilShown('');
  await untilAtRest(dataDir, 6);
  for (const person of people) expect(person.standing().filter((text) => text === 'Done.')).toHaveLength(1);
  expect([...seen].filter((counts) => /[2-9]/.test(counts))).toEqual([]);
  expect(reactionsTo(stage, 'first')).toEqual([[], [], []]);
  expect(findBreaches(dataDir)).toEqual([]);
}, 180_000);

it.skipIf(databaseServer === undefined)(
  'keeps the marks right on PostgreSQL when the worker that read the messages is killed',
  async () => {
    const database = await makeDatabase(onTestFinished);
    const { env, begun } = aSlowTool();
    const config = {
      queue: { waitingNotice: { afterMs: 500 } },
      lanes: { leaseMs: 2000, renewMs: 500 },
      replies: { ackReaction: '⚡' },
    };
    const settings = { config, env: { ...env, DATABASE_URL: database.url } };
    const { telegram, model, start } = await openStage(settings, onTestFinished);
    const markOf = (text: string) =>
      telegram
        .messages(ada.id)
        .find((one) => one.text === text)
        ?.botReaction?.replace('\ufe0f', '');
    const untilMarked = (first: string | undefined, second: string | undefined) =>
      telegram.waitFor(() => markOf('first') === first && markOf('second') === second);
    const gate = createGate();

    model.script(() => slow);
    await start({ role: 'gateway' });
    const worker = await start({ role: 'worker' });
    telegram.userSends({ from: ada, text: 'first' });
    await until(() => begun() === 1, { what: 'the tool works' });
    telegram.userSends({ from: ada, text: 'second' });
    await untilMarked('⚡', '👀');
    model.script(() => ({ text: 'Done.', hold: { gate } }));
    await worker.kill();
    const next = await start({ role: 'worker' });
    await untilMarked('⚡', '✍');
    await next.kill();
    gate.open();
    await start({ role: 'worker' });
    await untilSaid(telegram, { chat: ada.id, text: 'Done.' });
    await untilMarked(undefined, undefined);
    await until(async () => (await database.read('select 1 from marks')).length === 0, { what: 'no row' });
  },
  180_000,
);

it('answers as soon as without marks if the network limits them, refuses them, or they are off', async () => {
  const faults = [
    // Longer than anything here waits.
    { kind: 'refuse', code: 429, description: 'Too Many Requests', parameters: { retry_after: 600 } },
    { kind: 'refuse', code: 400, description: 'Bad Request: REACTION_INVALID' },
  ] as const;
  for (const fault of [...faults, undefined]) {
    const { env, begun, go } = aSlowTool();
    const waitingNotice = { afterMs: 500, ...(fault ? {} : { kind: 'off' }) };
    const stage = await openStage({ config: { queue: { waitingNotice } }, env }, onTestFinished);
    const { telegram, model, dataDir } = stage;
    const reactionCalls = () => telegram.calls.filter(({ method }) => method === 'setMessageReaction').length;
    if (fault) telegram.fault(fault, { method: 'setMessageReaction', times: 1_000 });
    model.script([slow, { text: 'Done.' }]);
    await stage.start();
    telegram.userSends({ from: ada, text: 'first' });
    await until(() => begun() === 1, { what: 'the tool works' });
    telegram.userSends({ from: ada, text: 'second' });
    if (fault) await until(() => reactionCalls() === 1, { what: 'a mark was tried' });
    go();
    await untilSaid(telegram, { chat: ada.id, text: 'Done.' });
    await untilAtRest(dataDir, 2);
    expect(said(telegram, ada.id)).toEqual(['Done.']);
    expect(reactionCalls()).toBeLessThanOrEqual(fault ? 3 : 0);
    expect(findBreaches(dataDir)).toEqual([]);
    await stage.close();
  }
}, 180_000);
