import { beforeAll, beforeEach, describe, test } from 'vitest';
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
import { forgetEffects } from './asking-tool.ts';
import { countEvents, findBreaches, readStore, untilAtRest } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import type { Play } from './kill-scenarios.ts';
import { link, untilTold } from './linking.ts';
import { pageToken } from './page-state.ts';
import { webPerson } from './person.ts';
import { answerQuestion, answerTo } from './questions.ts';
import { type ChannelName, openStage, type Stage, startStage } from './stage.ts';
import { isSubagent } from './subagent-play.ts';
import { ada, eve } from './telegram-chat.ts';
import { until } from './until.ts';

/** Together in one gateway. The owner has one conversation on the page and in the terminal, so these are apart. */
const places: readonly (readonly ChannelName[])[] = [['telegram', 'discord', 'signal', 'web'], ['terminal']];
const approved = endedAs('approved by them');
const answer = answerTo('question-1');

const resultsIn = (body: WireBody) =>
  body.messages.flatMap(blocksOf).filter(({ type }) => type === 'tool_result').length;

const resultsOf = (body: WireBody) =>
  JSON.stringify(body.messages.flatMap(blocksOf).filter(({ type }) => type === 'tool_result'));

/** Returns the results of calls, as the model read them. */
function resultsRead({ model }: Stage): string {
  const last = model.requests.at(-1)?.body;
  return last === undefined ? '' : resultsOf(last);
}

const endsOf = ({ dataDir }: Stage) =>
  readStore(dataDir, 'select state, decidedBy from callApprovals order by createdAt');

describe.concurrent('a call that needs an approval', { timeout: 300_000 }, () => {
  for (const channels of places)
    test(`asks, waits over a restart, and runs once approved on ${channels.join(', ')}`, async ({
      expect,
      onTestFinished,
    }) => {
      const stage = await openStage({ config: asksAboutOnce, networks: channels }, onTestFinished);
      stage.model.script(callsOnce.reply);
      const parley = await stage.start();
      const people = channels.map((channel) => ({ channel, person: stage.person(channel) }));
      for (const { person } of people) person.says('question-1');
      for (const { person } of people) await untilAsked(person);
      await parley.stop();
      await stage.start();
      for (const { person } of people) {
        await untilAsked(person);
        person.presses(labels.approve);
      }
      for (const { channel, person } of people)
        await until(() => chatOf(person).join('\n') === [approved, answer].join('\n'), {
          what: `the answer on ${channel}`,
        });
      await untilAtRest(stage.dataDir, channels.length);
      expect(stage.effects()).toHaveLength(channels.length);
      expect(findBreaches(stage.dataDir)).toEqual([]);
    });
});

describeRow('calls that need an approval', (atEnd) => {
  const owner = 590;
  let stage: Stage;
  let nextId = 501;
  /** How many calls asked, and how many events came, before the test. */
  let before = { calls: 0, events: 0 };

  beforeAll(async () => {
    const config = { ...asksAboutOnce, owners: [`telegram:${owner}`] };
    stage = await startStage({ config, networks: ['web', 'discord'] }, atEnd);
  });
  beforeEach(() => {
    forgetEffects(stage.home);
    before = { calls: endsOf(stage).length, events: countEvents(stage.dataDir) };
  });
  const ends = () => endsOf(stage).slice(before.calls);
  const untilRest = (events: number) => untilAtRest(stage.dataDir, before.events + events);

  /** Somebody asks something on Telegram, and the agent calls `once` first. */
  async function startAsked(reply: Play['reply'] = callsOnce.reply) {
    stage.model.script(reply);
    const person = stage.person('telegram', nextId++);
    person.says('question-1');
    await untilAsked(person);
    return person;
  }

  test('decides a question once, only by those who may, and tells everyone else so', async ({ expect }) => {
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
    expect(ends()).toEqual([{ state: 'open', decidedBy: null }]);
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
    await untilRest(8);
    expect(telegram.botMessages(chat.id)[0]?.text).toContain(`once: refused by ${by}.`);
    expect(stage.effects()).toEqual([]);
    expect(resultsRead(stage)).toContain('permission denied');
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('runs a call that an owner on another network approves', async ({ expect }) => {
    const person = await startAsked();
    const page = webPerson(() => stage.parley());
    const [{ id } = {}] = readStore(stage.dataDir, 'select id from callApprovals order by createdAt desc');
    page.says(`/approve ${id}`);
    await until(() => chatOf(person).includes(answer), { what: 'the answer' });
    page.close();
    await untilRest(2);
    expect(chatOf(person)).toEqual([approved, answer]);
    expect(ends()).toEqual([{ state: 'approved', decidedBy: 'web:owner “you”' }]);
    expect(stage.effects()).toHaveLength(1);
  });

  test('lets a linked account on another network decide, and no other account there', async ({ expect }) => {
    stage.model.script(callsOnce.reply);
    const id = nextId++;
    const person = stage.person('telegram', id);
    const linked = stage.person('discord', id);
    const stranger = stage.person('discord', nextId++);
    await link(person, linked);
    person.says('question-1');
    await untilAsked(person);
    const [{ id: question } = {}] = readStore(
      stage.dataDir,
      'select id from callApprovals order by createdAt desc',
    );
    stranger.says(`/approve ${question}`);
    await untilTold(stranger, /Only the person who asked me for this, or my owner, may decide that/);
    expect(ends()).toEqual([{ state: 'open', decidedBy: null }]);
    linked.says(`/approve ${question}`);
    await until(() => chatOf(person).includes(answer), { what: 'the answer' });
    await untilRest(6);
    expect(chatOf(person).slice(-2)).toEqual([approved, answer]);
    expect(ends()).toEqual([{ state: 'approved', decidedBy: expect.stringMatching(/^discord:/) }]);
    expect(stage.effects()).toHaveLength(1);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('refuses a call when nobody answers in time, and needs no answer after /stop', async ({ expect }) => {
    const person = await startAsked();
    expireAll(stage.dataDir);
    await until(() => chatOf(person).includes(answer), { what: 'the answer' });
    expect(chatOf(person)).toEqual([endedAs('nobody answered in time, so I didn’t do it'), answer]);
    expect(() => person.presses(labels.approve)).toThrow(/no button/);
    const other = stage.person('telegram', nextId++);
    other.says('question-2');
    await untilAsked(other);
    other.says('/stop');
    await until(() => chatOf(other).some((text) => text.includes('no longer needed')), { what: 'the end' });
    await untilRest(3);
    expect(ends().map(({ state }) => state)).toEqual(['expired', 'void']);
    expect(stage.effects()).toEqual([]);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('asks nothing again after Always, until that is taken back', async ({ expect }) => {
    const reply = (body: WireBody): Reply =>
      resultsIn(body) < questionsAsked(body) ? { toolCalls: [{ name: 'once' }] } : answerQuestion(body);
    const person = await startAsked(reply);
    person.presses(labels.always);
    await until(() => chatOf(person).includes(answer), { what: 'the first answer' });
    person.says('question-2');
    await until(() => chatOf(person).includes(answerTo('question-2')), { what: 'the second answer' });
    expect(ends()).toHaveLength(1);
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

  test('waits for each call of a batch on its own', async ({ expect }) => {
    const reply = (body: WireBody): Reply =>
      resultsIn(body) === 0 ? { toolCalls: [{ name: 'once' }, { name: 'once' }] } : answerQuestion(body);
    const person = await startAsked(reply);
    person.presses(labels.approve);
    await until(() => chatOf(person).join() === [approved, asked].join(), { what: 'the second question' });
    person.presses(labels.deny);
    await until(() => chatOf(person).includes(answer), { what: 'the answer' });
    expect(chatOf(person)).toEqual([approved, endedAs('refused by them'), answer]);
    expect(stage.effects()).toHaveLength(1);
  });

  test('asks about a sub-agent’s call in the conversation above it', async ({ expect }) => {
    const reply = (body: WireBody): Reply => {
      if (isSubagent(body))
        return resultsIn(body) === 0 ? { toolCalls: [{ name: 'once' }] } : { text: 'made' };
      if (resultsIn(body) > 0) return answerQuestion(body);
      return { toolCalls: [{ name: 'sessions_spawn', input: { task: 'make it', wait: true } }] };
    };
    const person = await startAsked(reply);
    await stage.parley().stop();
    await stage.start();
    person.presses(labels.approve);
    await until(() => chatOf(person).includes(answer), { what: 'the answer' });
    expect(chatOf(person)).toEqual([approved, answer]);
    expect(stage.effects()).toHaveLength(1);
  });

  test('asks an owner directly and on the page about a call without a conversation', async ({ expect }) => {
    stage.model.script((body, count) => (count === 1 ? { text: 'hi' } : callsOnce.reply(body, count)));
    const person = stage.person('telegram', owner);
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
