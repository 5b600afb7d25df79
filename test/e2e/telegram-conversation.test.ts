import { afterEach, beforeAll, describe, test } from 'vitest';
import { createGate, type Gate } from '../platforms/anthropic/gate.ts';
import { repeatAfterMe } from '../platforms/anthropic/server.ts';
import { blocksOf, isTimeNote, lastUserText, type WireBody } from '../platforms/anthropic/wire.ts';
import type { TgUser } from '../platforms/telegram/types.ts';
import { onePixel } from '../support/one-pixel.ts';
import { countEvents, findBreaches, readStore, untilAtRest, untilLedger } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { shareGateway } from './shared-gateway.ts';
import { type Stage, startStage } from './stage.ts';
import { ada, bob, eve, said, untilSaid } from './telegram-chat.ts';
import { until } from './until.ts';

/** Everything in one request to the model except the time, as one text. */
function shown(body: WireBody): string {
  const texts = body.messages.flatMap((message) => blocksOf(message).map((block) => textOf(block)));
  return texts.filter((text) => !isTimeNote(text)).join('\n');
}

function textOf({ text, content }: { text?: string; content?: unknown }): string {
  return text ?? (content === undefined ? '' : JSON.stringify(content));
}

const noBody: WireBody = { messages: [], model: '', max_tokens: 1 };

function timesIn(text: string, part: string): number {
  return text.split(part).length - 1;
}

// Some of these people want every message to have its own run, and two of them allow only a few to wait.
const [editor, stopper, summarized, dropped] = [590, 591, 593, 594];
const followup = { mode: 'followup' };
const conversations = {
  [`telegram:${editor}`]: followup,
  [`telegram:${stopper}`]: followup,
  [`telegram:${summarized}`]: { ...followup, cap: 2, drop: 'summarize' },
  [`telegram:${dropped}`]: { ...followup, cap: 2, drop: 'old' },
};
const agents = [{ id: 'main' }, { id: 'cook', name: 'Auguste', specialty: 'Recipes' }];
const aTalk = shareGateway({ config: { agents, queue: { conversations } } });

/** Answers with its number; the first answer waits for the gate, if there is one. */
const counting = (gate?: Gate) => (_body: WireBody, count: number) => ({
  text: `Answer ${count}.`,
  ...(count === 1 && gate && { hold: { gate } }),
});

describe.concurrent('a direct message on Telegram', () => {
  test('answers a direct message once, with typing and streaming drafts', async ({ expect }) => {
    const talk = aTalk();
    const { telegram, chat } = talk;
    const gate = createGate();
    talk.script(() => ({ chunks: ['The sky ', 'is blue ', 'today.'], hold: { gate, afterChunks: 2 } }));
    const asked = `What colour is the sky, ${talk.mark}?`;
    talk.says(asked);
    await telegram.waitFor(
      () =>
        telegram.drafts.some((draft) => draft.chatId === chat && draft.text === 'The sky is blue') &&
        telegram.typing.some(({ chatId }) => chatId === chat),
    );
    gate.open();
    await talk.untilSaid('The sky is blue today.');
    await talk.untilAtRest(1);

    expect(talk.said()).toEqual(['The sky is blue today.']);
    expect(talk.told(asked)).toBe(1);
  });
});

describeRow('a Telegram gateway after a restart', (atEnd) => {
  const owner = { id: 503, is_bot: false, first_name: 'Olga' };
  let gateway: Stage;

  beforeAll(async () => {
    const access = { dmPolicy: 'allowlist', allowFrom: [`telegram:${ada.id}`, `telegram:${bob.id}`] };
    gateway = await startStage({ config: { owners: [`telegram:${owner.id}`], access } }, atEnd);
    const { telegram, dataDir, parley, start } = gateway;
    telegram.userSends({ from: ada, text: 'My cat is called Byron.' });
    await untilSaid(telegram, { chat: ada.id, text: 'You said: My cat is called Byron.' });
    telegram.userSends({ from: eve, text: 'Hello?' });
    await untilSaid(telegram, { chat: eve.id, text: /people I don’t know\. .*telegram:666$/ });
    telegram.userSends({ from: eve, text: '/start' });
    telegram.userSends({ from: eve, text: 'Anybody?' });
    await untilAtRest(dataDir, 4);
    await parley().stop();
    telegram.userSends({ from: ada, text: 'What is my cat called?' });
    await start();
    await untilSaid(telegram, { chat: ada.id, text: 'You said: What is my cat called?' });
    telegram.userSends({ from: eve, text: 'Still nobody?' });
    telegram.userSends({ from: bob, text: 'I may.' });
    await untilSaid(telegram, { chat: bob.id, text: 'You said: I may.' });
    await untilAtRest(dataDir, 7);
  });

  test('continues a conversation, even with a message sent while Parley was down', ({ expect }) => {
    const { telegram, model, dataDir } = gateway;
    const ofAda = model.requests.filter(({ body }) => shown(body).includes('Byron'));
    const { messages } = ofAda[1]?.body ?? noBody;
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(messages.map((message) => blocksOf(message).at(-1)?.text)).toEqual([
      'My cat is called Byron.',
      'You said: My cat is called Byron.',
      'What is my cat called?',
    ]);
    expect(said(telegram, ada.id)).toHaveLength(2);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('sends a stranger one notice, another only for /start, and shows the model none of their messages', ({
    expect,
  }) => {
    const { telegram, model, dataDir } = gateway;
    expect(said(telegram, eve.id)).toHaveLength(2);
    expect(model.requests.map(({ body }) => lastUserText(body))).toEqual([
      'My cat is called Byron.',
      'What is my cat called?',
      'I may.',
    ]);
    const refused = readStore(dataDir, `select reason from ledger where outcome = 'refused'`);
    expect(refused).toEqual(Array(4).fill({ reason: 'dm-not-allowed' }));
  });
});

describe.concurrent('a group on Telegram', () => {
  const roger: TgUser = { id: 701, is_bot: false, first_name: 'Roger' };
  const una: TgUser = { id: 702, is_bot: false, first_name: 'Una' };

  test('answers a group in its topic when mentioned or replied to, with the messages before it', async ({
    expect,
  }) => {
    const talk = aTalk();
    const { telegram, mark } = talk;
    const chat = telegram.world.addSupergroup('team', { isForum: true }).chat.id;
    const garden = telegram.world.addTopic(chat, 'garden', roger);
    const kitchen = telegram.world.addTopic(chat, 'kitchen', roger);
    const inGarden = { chat, threadId: garden };
    talk.script(counting());
    telegram.userSends({ ...inGarden, from: roger, text: 'The roses want water.' });
    telegram.userSends({ chat, from: roger, threadId: kitchen, text: 'The oven is broken.' });
    telegram.userSends({ ...inGarden, from: una, text: `@ParleyTestBot what did Roger say, ${mark}?` });
    const first = await untilSaid(telegram, { chat, text: 'Answer 1.' });
    telegram.userSends({ ...inGarden, from: roger, text: 'And the lawn.' });
    telegram.userSends({ ...inGarden, from: roger, replyTo: first.messageId, text: 'Is that all?' });
    const second = await untilSaid(telegram, { chat, text: 'Answer 2.' });
    telegram.userSends({ chat, from: una, text: `@ParleyTestBot and here, in General, ${mark}?` });
    const third = await untilSaid(telegram, { chat, text: 'Answer 3.' });

    expect([first, second, third].map(({ threadId }) => threadId)).toEqual([garden, garden, undefined]);
    const [one = '', two = '', general = ''] = talk.requests().map(({ body }) => shown(body));
    expect(one).toMatch(/<<<untrusted [^>]*>>>\n\[Roger[^\n]*\] The roses want water\.\n<<<end untrusted/);
    expect(one).not.toContain('oven');
    expect(one).toMatch(/\[Una[^\n]*\] @ParleyTestBot what did Roger say/);
    expect([timesIn(two, 'The roses want water.'), timesIn(two, 'And the lawn.')]).toEqual([1, 1]);
    expect(general).not.toContain('roses');
    expect(said(telegram, chat)).toEqual(['Answer 1.', 'Answer 2.', 'Answer 3.']);
  });

  test('gives a topic an agent of its own by one command of an administrator', async ({ expect }) => {
    const talk = aTalk();
    const { telegram, mark, dataDir } = talk;
    const { chat, admins } = telegram.world.addSupergroup('team', { isForum: true });
    const garden = telegram.world.addTopic(chat.id, 'garden', roger);
    const inGarden = { chat: chat.id, threadId: garden };
    talk.script(counting());
    const ask = async (answer: string, place: object = inGarden) => {
      telegram.userSends({ chat: chat.id, from: una, text: `@ParleyTestBot hello, ${mark}?`, ...place });
      return untilSaid(telegram, { chat: chat.id, text: answer });
    };
    const lanes = () =>
      readStore(dataDir, 'select key from lanes where key like ?', `%:group:${chat.id}%`).map(({ key }) =>
        String(key).replace(/:.*:group:[^:]*/, ''),
      );
    await ask('Answer 1.');
    telegram.userSends({ ...inGarden, from: una, text: '/agent cook' });
    await untilSaid(telegram, { chat: chat.id, text: /^Only an admin of this group/ });
    admins.add(roger.id);
    telegram.userSends({ ...inGarden, from: roger, text: '/agent cook' });
    const told = await untilSaid(telegram, { chat: chat.id, text: /Auguste \(cook\) answers in this topic/ });
    expect(told.threadId).toBe(garden);
    await ask('Answer 2.');
    await ask('Answer 3.', {});
    expect(lanes().sort()).toEqual([`cook:thread:${garden}`, 'main', `main:thread:${garden}`]);
    telegram.userSends({ chat: chat.id, from: roger, text: '/agent cook' });
    await untilSaid(telegram, { chat: chat.id, text: /answers in this group, and in all topics/ });
    await ask('Answer 4.', {});
    expect(lanes()).toContain('cook');
  });

  test('follows a group to its new id when only a refused send reveals it', async ({ expect }) => {
    const talk = aTalk();
    const { telegram, mark, from, dataDir } = talk;
    const old = telegram.world.addGroup('family');
    const grown = telegram.world.addSupergroup('family');
    talk.script(counting());
    telegram.userSends({ chat: old.chat.id, from, text: `@ParleyTestBot hello, ${mark}` });
    old.migratedTo = grown.chat.id;
    await untilSaid(telegram, { chat: grown.chat.id, text: 'Answer 1.' });
    telegram.userSends({ chat: grown.chat.id, from, text: '@ParleyTestBot and now?' });
    await untilSaid(telegram, { chat: grown.chat.id, text: 'Answer 2.' });
    expect(said(telegram, grown.chat.id)).toEqual(['Answer 1.', 'Answer 2.']);
    const lanesOf = (chat: number) =>
      readStore(dataDir, 'select key from lanes where key like ?', `%:${chat}`);
    expect([lanesOf(old.chat.id).length, lanesOf(grown.chat.id).length]).toEqual([1, 0]);
  });

  test('answers several mentions that arrived during a run together, each once', async ({ expect }) => {
    const talk = aTalk('group');
    const { telegram, chat, mark } = talk;
    const gate = createGate();
    talk.script(counting(gate));
    talk.says(`@ParleyTestBot one ${mark}`);
    await gate.reached;
    const later = ['two', 'three', 'four'];
    for (const text of later) telegram.userSends({ chat, from: roger, text: `@ParleyTestBot ${text}` });
    await until(() => talk.rows('inbox', 'id').length === 4, { what: 'all four messages' });
    gate.open();
    await talk.untilSaid('Answer 2.');
    await talk.untilAtRest(4);
    expect(talk.said()).toEqual(['Answer 1.', 'Answer 2.']);
    expect(talk.rows('inbox', 'outcome').map(({ outcome }) => outcome)).toEqual([
      'answered',
      'merged',
      'merged',
      'answered',
    ]);
    const second = shown(talk.requests()[1]?.body ?? noBody);
    expect(later.map((text) => timesIn(second, `@ParleyTestBot ${text}`))).toEqual([1, 1, 1]);
  });

  test('joins an album and a split text whose first part mentions Parley', async ({ expect }) => {
    const talk = aTalk('group');
    const { telegram, chat, from, mark } = talk;
    talk.script(counting());
    const photo = () => telegram.world.addFile({ name: 'p.png', mimeType: 'image/png', bytes: onePixel });
    const album = { chat, from, text: `@ParleyTestBot compare these, ${mark}` };
    telegram.people.sendsAlbum(album, [photo(), photo(), photo()]);
    await talk.untilSaid('Answer 1.');
    telegram.people.sendsLong({ chat, from, text: `@ParleyTestBot ${'word '.repeat(1500)}END` });
    await talk.untilSaid('Answer 2.');
    await talk.untilAtRest(5);

    const [first, second] = talk.requests();
    expect(talk.requests()).toHaveLength(2);
    const images = first?.body.messages.flatMap(blocksOf).filter(({ type }) => type === 'image');
    expect(images).toHaveLength(3);
    expect(timesIn(shown(second?.body ?? noBody), 'END')).toBe(1);
    const outcomes = talk.rows('inbox', 'outcome').map(({ outcome }) => outcome);
    expect([...outcomes].sort()).toEqual(['answered', 'answered', 'merged', 'merged', 'merged']);
  });
});

describe.concurrent('a message sent during a run', () => {
  test('sends a finished answer before it answers a message sent meanwhile', async ({ expect }) => {
    const talk = aTalk();
    const [writing, extending] = [createGate(), createGate()];
    talk.script((_body, count) =>
      count === 1
        ? { chunks: ['First ', 'answer.'], hold: { gate: writing, afterChunks: 1 } }
        : { text: 'Second answer.', hold: { gate: extending } },
    );
    const [one, two] = [`One, ${talk.mark}.`, `Two, ${talk.mark}.`];
    talk.says(one);
    await talk.untilWriting();
    talk.says(two);
    await talk.untilHeard();
    writing.open();
    await extending.reached;
    await talk.untilSaid('First answer.');
    expect(talk.said()).toEqual(['First answer.']);
    extending.open();
    await talk.untilSaid('Second answer.');
    await talk.untilAtRest(2);

    expect(talk.said()).toEqual(['First answer.', 'Second answer.']);
    expect(talk.rows('runs', 'id')).toHaveLength(1);
    expect([talk.told(one), talk.told(two)]).toEqual([1, 1]);
  });

  test('reads a waiting message as edited, and shows a reaction at the next turn', async ({ expect }) => {
    const talk = aTalk('direct', editor);
    const { telegram, chat, from, mark } = talk;
    const edits = (messageId: number, text: string) => telegram.people.edits({ chat, messageId, text });
    const gate = createGate();
    talk.script(counting(gate));
    const running = talk.says(`Count to tree, ${mark}.`);
    await gate.reached;
    const waiting = talk.says('Then to for.');
    await talk.untilHeard();
    edits(waiting.messageId, 'Then to four.');
    edits(running.messageId, 'Count to three.');
    await until(() => talk.rows('inbox', 'id').length === 3, { what: 'the correction' });
    await talk.untilHeard();
    gate.open();
    await talk.untilSaid('Answer 3.');
    const [first] = telegram.botMessages(chat);
    telegram.people.reacts({ chat, from, messageId: first?.messageId ?? 0, emoji: '👍' });
    edits(running.messageId, 'Count to five.');
    await talk.untilHeard();
    talk.says('Thanks.');
    await talk.untilSaid('Answer 4.');
    await talk.untilAtRest(4);

    const [, corrected = '', followed = '', last = ''] = talk.requests().map(({ body }) => shown(body));
    expect(corrected).toContain('(Correction of an earlier message.) Count to three.');
    expect(corrected).not.toContain('Then to');
    expect(followed).toContain('Then to four.');
    expect(last).not.toContain('Then to for.');
    expect(timesIn(last, 'reacted with 👍')).toBe(1);
    expect(timesIn(last, 'It now reads:')).toBe(1);
    expect(timesIn(last, 'Count to five.')).toBe(1);
    // The correction came before the first word, so that call was given up.
    expect(talk.said()).toEqual(['Answer 2.', 'Answer 3.', 'Answer 4.']);
  });
});

describe.concurrent('a command on Telegram', () => {
  test("stops the run and cancels its sender's waiting messages on /stop", async ({ expect }) => {
    const talk = aTalk('direct', stopper);
    const gate = createGate();
    talk.script((_body, count) =>
      count === 1 ? { text: 'Never said.', hold: { gate } } : { text: 'Here.' },
    );
    talk.says(`Write a novel, ${talk.mark}.`);
    await gate.reached;
    talk.says('And another.');
    talk.says('/stop');
    await talk.untilSaid('Stopped.');
    await talk.untilAtRest(2);
    gate.open();
    talk.says('/stop');
    await talk.untilSaid('Nothing is running.');
    talk.says('Are you there?');
    await talk.untilSaid('Here.');
    await talk.untilAtRest(3);

    expect(talk.said()).toEqual(['Stopped.', 'Nothing is running.', 'Here.']);
    expect(talk.rows('inbox', 'outcome, outcomeReason')).toEqual([
      { outcome: 'cancelled', outcomeReason: 'stop' },
      { outcome: 'cancelled', outcomeReason: 'stop' },
      { outcome: 'answered', outcomeReason: null },
    ]);
  });

  test("stops the run when a draft's Stop button is pressed", async ({ expect }) => {
    const talk = aTalk();
    const gate = createGate();
    talk.script((_body, count) =>
      count === 1 ? { chunks: ['A long ', 'story'], hold: { gate, afterChunks: 1 } } : { text: 'Here.' },
    );
    talk.says(`Tell me, ${talk.mark}.`);
    await talk.untilWriting();
    talk.telegram.people.stopsDraft(talk.chat);
    await talk.untilSaid('Stopped.');
    await talk.untilAtRest(1);
    gate.open();
    talk.says('Are you there?');
    await talk.untilSaid('Here.');
    await talk.untilAtRest(2);
    // The words that the draft has shown stay.
    expect(talk.said()).toEqual(['Stopped.', expect.stringMatching(/^A long\s+⏹ Stopped$/), 'Here.']);
  });

  test('starts a new conversation on /new at once and aborts the run', async ({ expect }) => {
    const talk = aTalk();
    const gate = createGate();
    talk.script((_body, count) =>
      count === 1 ? { text: 'Never said.', hold: { gate } } : { text: 'Fresh.' },
    );
    talk.says(`Write a novel, ${talk.mark}.`);
    await gate.reached;
    talk.says('/new');
    talk.says(`Hello, ${talk.mark}.`);
    await talk.untilSaid('Fresh.');
    await talk.untilAtRest(3);
    gate.open();
    expect(talk.said()).toEqual([expect.stringMatching(/^Started a new conversation/), 'Fresh.']);
    expect(shown(talk.requests()[1]?.body ?? noBody)).toBe(`Hello, ${talk.mark}.`);
    expect(talk.rows('inbox', 'outcome, outcomeReason as reason')).toEqual([
      { outcome: 'cancelled', reason: 'reset' },
      { outcome: 'answered', reason: 'command' },
      { outcome: 'answered', reason: null },
    ]);
  });

  test('answers /start, /help, /status, /queue and /new', async ({ expect }) => {
    const talk = aTalk();
    const { telegram, mark } = talk;
    talk.script(counting());
    for (const text of ['/start', '/help', '/status', '/queue', '/queue followup', '/queue reset'])
      talk.says(text);
    await telegram.waitFor(() => talk.said().length === 6);
    talk.says(`Remember the milk, ${mark}.`);
    talk.says('/new');
    talk.says(`What should I remember, ${mark}?`);
    await until(
      () => talk.requests().some(({ body }) => shown(body) === `What should I remember, ${mark}?`),
      {
        what: 'a conversation without the milk',
      },
    );
    await talk.untilAtRest(3);

    const [start, help, status, queue, followup, reset] = talk.said();
    expect(start).toMatch(/^Hello!/);
    expect(help).toMatch(/\/stop .*\n[\s\S]*\/queue /);
    expect(status).toMatch(/model anthropic\/claude/);
    expect([queue, followup, reset]).toEqual([
      expect.stringMatching(/^Queue: steer /),
      expect.stringMatching(/^Queue: followup /),
      expect.stringMatching(/steer /),
    ]);
    expect(telegram.platform.commands.map(({ command }) => command)).toContain('stop');
    expect(talk.said().filter((text) => text.startsWith('Started a new conversation'))).toHaveLength(1);
  });
});

describe.concurrent('more messages than a lane accepts', () => {
  const drops = [
    {
      drop: 'summarize',
      by: summarized,
      notice: /so I’ll read your oldest as one line/,
      outcome: 'merged',
      reason: 'summarized',
    },
    {
      drop: 'old',
      by: dropped,
      notice: /^Too many messages are waiting, so I dropped your oldest: “(One|Two)\.”$/,
      outcome: 'refused',
      reason: 'queue-full',
    },
  ] as const;

  test.for(drops)(
    'reports and records each message over the cap (drop: $drop)',
    async ({ drop, by, notice, outcome, reason }, { expect }) => {
      const talk = aTalk('direct', by);
      const gate = createGate();
      talk.script(counting(gate));
      talk.says(`Zero, ${talk.mark}.`);
      await gate.reached;
      for (const text of ['One.', 'Two.', 'Three.', 'Four.']) talk.says(text);
      await talk.telegram.waitFor(() => talk.said().filter((text) => notice.test(text)).length === 2);
      gate.open();
      await talk.untilSaid('Answer 3.');
      await talk.untilAtRest(5);
      const answered = { outcome: 'answered', reason: null };
      expect(talk.rows('inbox', 'outcome, outcomeReason as reason')).toEqual([
        answered,
        { outcome, reason },
        { outcome, reason },
        answered,
        answered,
      ]);
      const next = shown(talk.requests()[1]?.body ?? noBody);
      expect(['One.', 'Two.'].map((text) => timesIn(next, text))).toEqual(drop === 'old' ? [0, 0] : [1, 1]);
      expect(talk.said()).toHaveLength(5);
    },
  );

  test('refuses messages over the rate limit with one notice', async ({ expect, onTestFinished }) => {
    const config = { rateLimit: { perSenderPerMinute: 2 }, queue: { dm: { mode: 'followup' } } };
    const { telegram, dataDir } = await startStage({ config }, onTestFinished);
    for (const text of ['One.', 'Two.', 'Three.', 'Four.']) telegram.userSends({ from: ada, text });
    telegram.userSends({ from: bob, text: 'Me too.' });
    await untilSaid(telegram, { chat: ada.id, text: 'You said: Two.' });
    await untilSaid(telegram, { chat: bob.id, text: 'You said: Me too.' });
    await untilAtRest(dataDir, 5);
    expect([...said(telegram, ada.id)].sort()).toEqual([
      expect.stringMatching(/^That’s too many messages at once. Please wait \d+ s.$/),
      'You said: One.',
      'You said: Two.',
    ]);
    const refused = readStore(dataDir, `select reason from ledger where outcome = 'refused'`);
    expect(refused).toEqual([{ reason: 'rate-limited' }, { reason: 'rate-limited' }]);
    expect(findBreaches(dataDir)).toEqual([]);
  });
});

describeRow('allowed groups on Telegram', (atEnd) => {
  let gateway: Stage;
  let [family, team, strangers] = [0, 0, 0];

  beforeAll(async () => {
    const allowGroups = ['telegram:-1001', 'telegram:-1002'];
    const access = { dmPolicy: 'disabled', groupPolicy: 'allowlist', allowGroups };
    gateway = await startStage({ config: { access, owners: ['telegram:501'] } }, atEnd);
    const add = (title: string) => gateway.telegram.world.addGroup(title).chat.id;
    [family, team, strangers] = [add('family'), add('team'), add('strangers')];
  });
  afterEach(() => gateway.model.script(repeatAfterMe));

  test("keeps a group's session when it becomes a supergroup", async ({ expect }) => {
    const { telegram, model, dataDir } = gateway;
    expect([family, team, strangers]).toEqual([-1001, -1002, -1003]);
    telegram.userSends({ chat: family, from: bob, text: '@ParleyTestBot remember: milk' });
    await untilSaid(telegram, { chat: family, text: /remember: milk$/ });
    const gate = createGate();
    model.script((body) => ({ text: `${timesIn(shown(body), 'remember: milk')} milk`, hold: { gate } }));
    telegram.userSends({ chat: family, from: bob, text: '@ParleyTestBot what did I say?' });
    await gate.reached;
    const grown = telegram.people.migrates(family);
    gate.open();
    await untilSaid(telegram, { chat: grown, text: '2 milk' });
    telegram.userSends({ chat: grown, from: bob, text: '@ParleyTestBot and again?' });
    await telegram.waitFor(() => said(telegram, grown).length === 2);
    await untilAtRest(dataDir, 4);

    expect(said(telegram, grown)).toEqual(['2 milk', '2 milk']);
    expect(readStore(dataDir, 'select key from lanes')).toHaveLength(1);
    expect(readStore(dataDir, 'select id from sessions')).toHaveLength(1);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('lets the owner, but no guest, turn mentions off in an allowed group, and ignores other groups', async ({
    expect,
  }) => {
    const { telegram, model, dataDir } = gateway;
    const before = countEvents(dataDir);
    telegram.userSends({ chat: strangers, from: bob, text: '@ParleyTestBot hello?' });
    telegram.userSends({ chat: team, from: bob, text: '/activation@ParleyTestBot always' });
    telegram.userSends({ chat: team, from: bob, text: 'Nobody is asked.' });
    await untilLedger(dataDir, before + 3);
    telegram.userSends({ chat: team, from: ada, text: '/activation@ParleyTestBot always' });
    await untilSaid(telegram, { chat: team, text: 'I now answer every message here.' });
    telegram.userSends({ chat: team, from: bob, text: 'And now?' });
    await untilSaid(telegram, { chat: team, text: /And now\?$/ });
    telegram.userSends({ chat: team, from: bob, text: '/stop all' });
    telegram.userSends({ chat: team, from: bob, text: '/whoami' });
    await untilSaid(telegram, { chat: team, text: /^You are telegram:502, here as guest\./ });
    await untilAtRest(dataDir, before + 7);
    expect(said(telegram, strangers)).toEqual([]);
    expect(model.requests.every(({ body }) => !shown(body).includes('hello?'))).toBe(true);
    expect(findBreaches(dataDir)).toEqual([]);
  });
});

describe.concurrent('a person who blocks the bot', () => {
  test('makes a conversation unreachable while its person blocks the bot', async ({ expect }) => {
    const talk = aTalk();
    const { telegram, from, mark } = talk;
    const gate = createGate();
    talk.script(counting(gate));
    talk.says(`One, ${mark}.`);
    await gate.reached;
    telegram.people.blocks(from);
    await talk.untilHeard();
    gate.open();
    await talk.untilAtRest(1);
    expect(talk.said()).toEqual([]);
    expect(talk.rows('inbox', 'outcome')).toEqual([{ outcome: 'failed' }]);

    telegram.people.unblocks(from);
    talk.says('Two.');
    await talk.untilSaid('Answer 2.');
    await talk.untilAtRest(2);
    expect(talk.said()).toEqual(['Answer 2.']);
  });

  test('notices a blocked bot at the send if no update reported it', async ({ expect }) => {
    const talk = aTalk();
    const { telegram, chat, from, dataDir } = talk;
    telegram.world.addPrivateChat(from);
    talk.says(`One, ${talk.mark}.`);
    telegram.world.addPrivateChat(from).isBlocked = true;
    await talk.untilAtRest(1);

    expect(talk.said()).toEqual([]);
    expect(talk.rows('inbox', 'outcome, outcomeReason')).toEqual([
      { outcome: 'failed', outcomeReason: 'delivery failed' },
    ]);
    const [conversation] = readStore(
      dataDir,
      'select unreachableAt from conversations where key like ?',
      `%/${chat}`,
    );
    expect(conversation?.unreachableAt).not.toBeNull();
  });
});
