/** Telegram, Discord and Signal in one gateway: together where they should be, and apart everywhere else. */
import { beforeAll, type ExpectStatic, test } from 'vitest';
import { runParley } from '../cli/run-parley.ts';
import { createGate } from '../platforms/anthropic/gate.ts';
import { lastUserText, type WireBody } from '../platforms/anthropic/wire.ts';
import { countEvents, findBreaches, readStore, untilAtRest, untilLedger } from './conservation.ts';
import { type Crowd, crowdOf, forCrowd } from './crowd.ts';
import { describeRow } from './describe-row.ts';
import { discordOf } from './discord-side.ts';
import { link, untilTold } from './linking.ts';
import { discordNetwork } from './networks/discord.ts';
import type { Network } from './networks/network.ts';
import { signalNetwork } from './networks/signal.ts';
import { telegramNetwork } from './networks/telegram.ts';
import { channelShown, pageToken } from './page-state.ts';
import { answerQuestion, answerTo, questionOf, questionsIn } from './questions.ts';
import { roomsOf, signalIdOf, telegramIdOf } from './rooms.ts';
import { signalOf } from './signal-side.ts';
import { type AtEnd, type Config, openStage, type Stage } from './stage.ts';
import { until } from './until.ts';

const networks: readonly Network[] = [telegramNetwork, discordNetwork, signalNetwork];

/** On all three networks and on nothing else. */
function openAll(atEnd: AtEnd, config: Config = {}, groupPolicy = 'open'): Promise<Stage> {
  return openStage(
    { config: { ...config, access: { groupPolicy } }, networks: ['discord', 'signal'] },
    atEnd,
  );
}

/** Two people on each network, who haven't written before. */
function gatherOn(
  stage: Stage,
  firstId: number,
): readonly { readonly network: Network; readonly crowd: Crowd }[] {
  return networks.map((network) => {
    const people = [firstId, firstId + 1].map((id) => stage.person(network.channel, id));
    return { network, crowd: crowdOf(people, `${network.name} ${firstId}`) };
  });
}

/** Sends each network something that Parley refuses to read, and returns the ids of these messages. */
function sendUnsupported(stage: Stage): readonly string[] {
  const { server: discord, user } = discordOf(stage);
  const { server: signal, user: signalUser } = signalOf(stage);
  const from = { id: 501, is_bot: false, first_name: 'Person 501' };
  const fields = { storyContext: { sentTimestamp: 1 } };
  return [
    telegramIdOf(stage.telegram.userSends({ from, fields: { forum_topic_closed: {} } })),
    discord.people.sends({ from: user(501), type: 3 }).id,
    signalIdOf(signal.people.writes({ from: signalUser(501), fields })),
  ];
}

type Refusal = {
  readonly stage: Stage;
  readonly act: 'says' | 'asks';
  readonly why: { readonly outcome: string; readonly reason: string };
  readonly expect: ExpectStatic;
};

/** A message in a group of each network stays without an answer, and the ledger says why. */
async function recordsWhy({ stage, act, why, expect }: Refusal): Promise<void> {
  const [events, asks] = [countEvents(stage.dataDir), stage.model.requests.length];
  const rooms = roomsOf(stage);
  for (const room of rooms) room[act]('question-of-no-account');
  await untilAtRest(stage.dataDir, events + 3);
  const recorded = readStore(stage.dataDir, 'select outcome, reason from ledger order by rowid');
  expect(recorded.slice(events)).toEqual(rooms.map(() => why));
  expect(stage.model.requests).toHaveLength(asks);
}

describeRow('one gateway on three networks', (atEnd) => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await openAll(atEnd);
    await stage.start();
  });

  test('continues one conversation across three networks, each answer where its question was asked', async ({
    expect,
  }) => {
    const { model, dataDir } = stage;
    const [telegram, discord, signal] = networks.map(({ channel }) => stage.person(channel, 601));
    if (!telegram || !discord || !signal) throw new Error('test error: there are three networks');
    const gate = createGate();
    const isHeld = (body: WireBody) => questionOf(body) === 'question-on-discord';
    model.script((body) => ({ ...answerQuestion(body), ...(isHeld(body) && { hold: { gate } }) }));

    telegram.says('question-on-telegram');
    await untilTold(telegram, new RegExp(answerTo('question-on-telegram')));
    await link(telegram, discord);
    await link(discord, signal);
    discord.says('question-on-discord');
    await gate.reached;
    signal.says('question-on-signal');
    await untilLedger(dataDir, 9);
    telegram.says('question-on-telegram-again');
    await untilLedger(dataDir, 10);
    gate.open();
    await untilTold(telegram, new RegExp(answerTo('question-on-telegram-again')));
    await untilAtRest(dataDir, 10);

    const answers = [telegram, discord, signal].map((person) =>
      person.standing().filter((text) => text.startsWith('The answer')),
    );
    expect(answers).toEqual([
      [answerTo('question-on-telegram'), answerTo('question-on-telegram-again')],
      [answerTo('question-on-discord')],
      [answerTo('question-on-signal')],
    ]);
    expect(questionsIn(model.requests.at(-1)?.body)).toEqual(
      ['on-telegram', 'on-discord', 'on-signal', 'on-telegram-again'].map((one) => `question-${one}`),
    );
    expect(readStore(dataDir, 'select id from sessions where messageCount > 0')).toHaveLength(1);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('answers mentions in a group of each network at the same time', async ({ expect }) => {
    const { model, dataDir } = stage;
    const rooms = roomsOf(stage);
    const [events, asks] = [countEvents(dataDir), model.requests.length];
    const gate = createGate();
    model.script((body) => ({ ...answerQuestion(body), hold: { gate } }));
    for (const [index, room] of rooms.entries()) room.asks(`question-${index}`);
    await model.waitForRequest(asks + 3);
    gate.open();
    await untilAtRest(dataDir, events + 3);
    for (const [index, room] of [...rooms.entries()].reverse()) room.asks(`question-${index}-again`);
    await untilAtRest(dataDir, events + 6);

    const asked = rooms.map((_, index) => [`question-${index}`, `question-${index}-again`]);
    expect(rooms.map((room) => room.standing())).toEqual(asked.map((questions) => questions.map(answerTo)));
    // No conversation saw the questions of another.
    const shown = model.requests.map(({ body }) => questionsIn(body));
    expect(shown.slice(asks + 3).sort()).toEqual(asked);
    const direct = networks.map(({ channel }) => stage.person(channel).standing());
    expect(direct).toEqual([[], [], []]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test("records why it doesn't answer a group message without a mention (pitfall 52)", async ({ expect }) => {
    await recordsWhy({ stage, act: 'says', why: { outcome: 'ignored', reason: 'not-mentioned' }, expect });
  });
});

describeRow('one gateway in groups of three networks that are not allowed', (atEnd) => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await openAll(atEnd, {}, 'allowlist');
    await stage.start();
  });

  test("records why it doesn't answer a group message in a group that is not allowed (pitfall 52)", async ({
    expect,
  }) => {
    await recordsWhy({
      stage,
      act: 'asks',
      why: { outcome: 'refused', reason: 'group-not-allowed' },
      expect,
    });
  });

  test('finds refused messages by the ids that people see, on the command line and the page', async ({
    expect,
  }) => {
    const rooms = roomsOf(stage);
    const { url } = stage.parley();
    const events = countEvents(stage.dataDir);
    const asked = rooms.map((room) => room.asks('question-of-no-account'));
    const unsupported = sendUnsupported(stage);
    await untilAtRest(stage.dataDir, events + 6);
    const env = { PARLEY_DATA_DIR: stage.dataDir };
    const headers = { authorization: `Bearer ${pageToken}` };
    const finds = async (id: string, reason: string) => {
      const { stdout, stderr } = await runParley(['why', id], env);
      expect([id, stdout, stderr]).toEqual([id, expect.stringContaining(`refused (${reason})`), '']);
      const shown = await fetch(`${url}/api/why?id=${encodeURIComponent(id)}`, { headers });
      expect(await shown.text()).toContain(reason);
    };
    // One after the other, so that one process runs all the commands.
    for (const id of asked) await finds(id, 'group-not-allowed');
    for (const id of unsupported) await finds(id, 'unsupported-event');
    expect(stage.model.requests).toEqual([]);
  });
});

describeRow('one gateway under load on three networks', (atEnd) => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await openAll(atEnd, forCrowd);
    await stage.start();
  });

  test('loses and doubles nothing when killed with runs on three networks', async ({ expect }) => {
    const { model, dataDir } = stage;
    const crowds = gatherOn(stage, 1001);
    const everybodySpeaks = () => {
      for (const { crowd } of crowds) crowd.speaks();
    };
    const first = stage.parley();
    everybodySpeaks();
    await untilAtRest(dataDir, 6);

    // In each conversation one message is being answered and one waits behind it.
    const gate = createGate();
    model.script((body) => ({ chunks: ['You said: ', lastUserText(body)], hold: { gate } }));
    everybodySpeaks();
    await model.waitForRequest(12);
    everybodySpeaks();
    await untilLedger(dataDir, 18);
    await first.kill();
    // On networks that keep messages, people continue writing meanwhile.
    for (const { network, crowd } of crowds) if (network.whileDown === 'kept') crowd.speaks();
    model.script((body) => ({ text: `You said: ${lastUserText(body)}` }));
    await stage.start();
    await untilAtRest(dataDir, 22);
    everybodySpeaks();
    await untilAtRest(dataDir, 28);
    gate.open();
    for (const { crowd } of crowds) expect(crowd.breaches(dataDir)).toEqual([]);
    expect(readStore(dataDir, 'select 1 from ledger')).toHaveLength(28);
  });

  test('answers on other networks while one fails', async ({ expect }) => {
    const { dataDir } = stage;
    const { url } = stage.parley();
    const events = countEvents(dataDir);
    const crowds = gatherOn(stage, 2001);
    for (const { crowd } of crowds) crowd.speaks();
    await untilAtRest(dataDir, events + 6);
    for (const { network, crowd } of crowds) {
      const [outage] = network.outages;
      const others = crowds.filter((one) => one.crowd !== crowd);
      await outage.begin(stage);
      const answered = crowd.answered();
      for (const one of crowds) one.crowd.speaks();
      const areAnswered = () => others.every((one) => one.crowd.answered() === one.crowd.count());
      await until(areAnswered, { what: `the answers while ${network.name} ${outage.what}` });
      expect(crowd.answered()).toBe(answered);
      const isShown = async () => (await channelShown(url, network.channel)).state === 'trouble';
      await until(isShown, { what: `the trouble of ${network.name} on show` });
      for (const one of others)
        expect((await channelShown(url, one.network.channel)).state, one.network.name).toBe('on');
      await outage.end(stage);
      const isBack = async () => (await channelShown(url, network.channel)).state === 'on';
      await until(isBack, { what: `the return of ${network.name} on show` });
      await untilAtRest(
        dataDir,
        crowds.reduce((sum, one) => sum + one.crowd.count(), events),
        30_000,
      );
    }
    for (const { crowd } of crowds) expect(crowd.breaches(dataDir)).toEqual([]);
  });
});
