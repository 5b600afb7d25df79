import { describe, test } from 'vitest';
import type { Reply } from '../platforms/anthropic/turn.ts';
import { blocksOf, type WireBody } from '../platforms/anthropic/wire.ts';
import {
  asked,
  asksAboutOnce,
  callsOnce,
  chatOf,
  endedAs,
  expireAll,
  labels,
  untilAsked,
} from './asked-calls.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { pageToken } from './page-state.ts';
import { webPerson } from './person.ts';
import { answerQuestion, answerTo } from './questions.ts';
import { type AtEnd, type ChannelName, type Config, openStage, type Stage, startStage } from './stage.ts';
import { isSubagent } from './subagent-play.ts';
import { ada, eve } from './telegram-chat.ts';
import { until } from './until.ts';

const channels: readonly ChannelName[] = ['telegram', 'discord', 'signal', 'web', 'terminal'];
const approved = endedAs('approved by them');
const answer = answerTo('question-1');

type Settings = {
  readonly reply?: (body: WireBody, count: number) => Reply;
  readonly config?: Config;
  readonly networks?: readonly ChannelName[];
};

/** Starts a gateway whose agent calls `once` first, and lets a person ask something on Telegram. */
async function startAsked(atEnd: AtEnd, { reply = callsOnce.reply, config, networks = [] }: Settings = {}) {
  const stage = await startStage({ config: { ...asksAboutOnce, ...config }, networks }, atEnd);
  stage.model.script(reply);
  const person = stage.person('telegram');
  person.says('question-1');
  await untilAsked(person);
  return { stage, person };
}

const resultsIn = (body: WireBody) =>
  body.messages.flatMap(blocksOf).filter(({ type }) => type === 'tool_result').length;

/** Returns the results of calls, as the model read them. */
function resultsRead({ model }: Stage): string {
  const last = model.requests.at(-1)?.body;
  return JSON.stringify(last?.messages.flatMap(blocksOf).filter(({ type }) => type === 'tool_result'));
}

const endsOf = ({ dataDir }: Stage) =>
  readStore(dataDir, 'select state, decidedBy from callApprovals order by createdAt');

describe.concurrent('a call that needs an approval', { timeout: 300_000 }, () => {
  for (const channel of channels)
    test(`asks, waits over a restart, and runs once approved on ${channel}`, async ({
      expect,
      onTestFinished,
    }) => {
      const stage = await openStage({ config: asksAboutOnce, networks: [channel] }, onTestFinished);
      stage.model.script(callsOnce.reply);
      const parley = await stage.start();
      const person = stage.person(channel);
      person.says('question-1');
      await untilAsked(person);
      await parley.stop();
      await stage.start();
      await untilAsked(person);
      person.presses(labels.approve);
      await until(() => chatOf(person).join('\n') === [approved, answer].join('\n'), { what: 'the answer' });
      await untilAtRest(stage.dataDir, 1);
      expect(stage.effects()).toHaveLength(1);
      expect(findBreaches(stage.dataDir)).toEqual([]);
    });

  test('decides a question once, only by those who may, and tells everyone else so', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await startStage({ config: asksAboutOnce }, onTestFinished);
    const { telegram } = stage;
    stage.model.script(callsOnce.reply);
    const { chat } = telegram.world.addSupergroup('friends');
    telegram.people.sends({ chat: chat.id, from: ada, text: `@${telegram.bot.username} question-1` });
    const question = () =>
      [...telegram.world.state(chat.id).messages.values()].find(({ message }) => message.reply_markup);
    await telegram.waitFor(() => question() !== undefined);
    const { messageId = 0, message } = question() ?? {};
    const [[yes, , no] = []] = message?.reply_markup?.inline_keyboard ?? [];
    const told: string[] = [];
    const press = async (from: typeof ada, data = '') => {
      const id = telegram.people.presses({ chat: chat.id, from, messageId, data });
      const answers = () => telegram.platform.answeredCallbacks.filter((each) => each.id === id);
      await telegram.waitFor(() => answers().length > 0);
      told.push(...answers().map(({ text }) => text));
    };
    await press(eve, yes?.callback_data);
    await press(ada, 'a:zzzzzzzzzz:y');
    await press(ada, 'b:whatever');
    expect(endsOf(stage)).toEqual([{ state: 'open', decidedBy: null }]);
    await press(ada, no?.callback_data);
    await press(ada, no?.callback_data);
    await press(ada, yes?.callback_data);
    await press(eve, yes?.callback_data);
    const by = 'telegram:501 “Ada”';
    expect(told).toEqual([
      'Only the person who asked me for this, or my owner, may decide that.',
      'There’s no such question.',
      'There’s no such question.',
      `once: refused by ${by}.`,
      ...Array(3).fill(`Already refused by ${by}.`),
    ]);
    await until(() => telegram.botMessages(chat.id).some(({ text }) => text === answer), {
      what: 'the answer',
    });
    await untilAtRest(stage.dataDir, 8);
    expect(telegram.botMessages(chat.id)[0]?.text).toContain(`once: refused by ${by}.`);
    expect(stage.effects()).toEqual([]);
    expect(resultsRead(stage)).toContain('permission denied');
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('runs a call that an owner on another network approves', async ({ expect, onTestFinished }) => {
    const { stage, person } = await startAsked(onTestFinished, { networks: ['web'] });
    const page = webPerson(() => stage.parley());
    const [{ id } = {}] = readStore(stage.dataDir, 'select id from callApprovals');
    page.says(`/approve ${id}`);
    await until(() => chatOf(person).includes(answer), { what: 'the answer' });
    page.close();
    await untilAtRest(stage.dataDir, 2);
    expect(chatOf(person)).toEqual([approved, answer]);
    expect(endsOf(stage)).toEqual([{ state: 'approved', decidedBy: 'web:owner “you”' }]);
    expect(stage.effects()).toHaveLength(1);
  });

  test('refuses a call when nobody answers in time, and needs no answer after /stop', async ({
    expect,
    onTestFinished,
  }) => {
    const { stage, person } = await startAsked(onTestFinished);
    expireAll(stage.dataDir);
    await until(() => chatOf(person).includes(answer), { what: 'the answer' });
    expect(chatOf(person)).toEqual([endedAs('nobody answered in time, so I didn’t do it'), answer]);
    expect(() => person.presses(labels.approve)).toThrow(/no button/);
    const other = stage.person('telegram', 502);
    other.says('question-2');
    await untilAsked(other);
    other.says('/stop');
    await until(() => chatOf(other).some((text) => text.includes('no longer needed')), { what: 'the end' });
    await untilAtRest(stage.dataDir, 3);
    expect(endsOf(stage).map(({ state }) => state)).toEqual(['expired', 'void']);
    expect(stage.effects()).toEqual([]);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('asks nothing again after Always, until that is taken back', async ({ expect, onTestFinished }) => {
    const reply = (body: WireBody): Reply =>
      resultsIn(body) < questionsAsked(body) ? { toolCalls: [{ name: 'once' }] } : answerQuestion(body);
    const { stage, person } = await startAsked(onTestFinished, { reply });
    person.presses(labels.always);
    await until(() => chatOf(person).includes(answer), { what: 'the first answer' });
    person.says('question-2');
    await until(() => chatOf(person).includes(answerTo('question-2')), { what: 'the second answer' });
    expect(endsOf(stage)).toHaveLength(1);
    expect(stage.effects()).toHaveLength(2);
    const [{ id } = {}] = readStore(stage.dataDir, 'select id from grants');
    person.says('/approvals');
    await until(() => chatOf(person).some((text) => text.startsWith(`${id}: once is allowed until`)), {
      what: 'the list',
    });
    person.says(`/approvals revoke ${id}`);
    await until(() => chatOf(person).some((text) => text.startsWith(`${id} isn’t allowed`)), {
      what: 'the end',
    });
    person.says('question-3');
    await untilAsked(person);
    person.presses(labels.approve);
    await until(() => chatOf(person).includes(answerTo('question-3')), { what: 'the third answer' });
    expect(stage.effects()).toHaveLength(3);
  });

  test('waits for each call of a batch on its own', async ({ expect, onTestFinished }) => {
    const reply = (body: WireBody): Reply =>
      resultsIn(body) === 0 ? { toolCalls: [{ name: 'once' }, { name: 'once' }] } : answerQuestion(body);
    const { stage, person } = await startAsked(onTestFinished, { reply });
    person.presses(labels.approve);
    await until(() => chatOf(person).join() === [approved, asked].join(), { what: 'the second question' });
    person.presses(labels.deny);
    await until(() => chatOf(person).includes(answer), { what: 'the answer' });
    expect(chatOf(person)).toEqual([approved, endedAs('refused by them'), answer]);
    expect(stage.effects()).toHaveLength(1);
  });

  test('asks about a sub-agent’s call in the conversation above it', async ({ expect, onTestFinished }) => {
    const reply = (body: WireBody): Reply => {
      if (isSubagent(body))
        return resultsIn(body) === 0 ? { toolCalls: [{ name: 'once' }] } : { text: 'made' };
      if (resultsIn(body) > 0) return answerQuestion(body);
      return { toolCalls: [{ name: 'sessions_spawn', input: { task: 'make it', wait: true } }] };
    };
    const { stage, person } = await startAsked(onTestFinished, { reply });
    await stage.parley().stop();
    await stage.start();
    person.presses(labels.approve);
    await until(() => chatOf(person).includes(answer), { what: 'the answer' });
    expect(chatOf(person)).toEqual([approved, answer]);
    expect(stage.effects()).toHaveLength(1);
  });

  test('asks an owner directly and on the page about a call without a conversation', async ({
    expect,
    onTestFinished,
  }) => {
    const config = { owners: [`telegram:${ada.id}`] };
    const stage = await startStage({ config: { ...asksAboutOnce, ...config } }, onTestFinished);
    stage.model.script((body, count) => (count === 1 ? { text: 'hi' } : callsOnce.reply(body, count)));
    const person = stage.person('telegram', ada.id);
    person.says('hello');
    await until(() => chatOf(person).includes('hi'), { what: 'the owner is known' });
    const call = (path: string, body?: object) => callApi(stage, path, body);
    await call('agent', { message: 'question-1' });
    await untilAsked(person);
    const { questions } = await call('notices');
    expect(questions.map(({ text }: { text: string }) => text)).toEqual([
      'May I use once like this?\n{\n "dies": 0\n}',
    ]);
    expect(questions[0].choices.map(({ label }: { label: string }) => label)).toEqual(Object.values(labels));
    await call('notices/answer', { id: questions[0].id, verdict: 'approve' });
    await until(() => chatOf(person).includes(endedAs('approved by the page')), { what: 'the end is shown' });
    await until(() => stage.effects().length === 1, { what: 'the call' });
    expect((await call('notices')).questions).toEqual([]);
  });
});

/** How many questions the person has asked so far. */
function questionsAsked(body: WireBody): number {
  return new Set(JSON.stringify(body.messages).match(/question-\d/g)).size;
}

async function callApi(stage: Stage, path: string, body?: object) {
  const answered = await fetch(`${stage.parley().url}/api/${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${pageToken}`, 'content-type': 'application/json', 'x-parley': '1' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return JSON.parse(await answered.text());
}
