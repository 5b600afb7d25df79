import { describe, test } from 'vitest';
import { createGate } from '../platforms/anthropic/gate.ts';
import { blocksOf, isTimeNote, type WireBody, withoutNotes } from '../platforms/anthropic/wire.ts';
import { countTold, findBreaches, readStore, untilAtRest, untilLedger } from './conservation.ts';
import { ada, bob, eve, said, startTelegramGateway, untilSaid } from './telegram-gateway.ts';

/** Everything the model was shown in one request but the time, as one text. */
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

describe.concurrent('a direct message on Telegram', () => {
  test('is answered once, with typing shown and the answer streaming in as drafts', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({}, onTestFinished);
    const gate = createGate();
    model.script([{ chunks: ['The sky ', 'is blue ', 'today.'], hold: { gate, afterChunks: 2 } }]);
    telegram.userSends({ from: ada, text: 'What colour is the sky?' });
    await telegram.waitFor(() => telegram.drafts.some((draft) => draft.text === 'The sky is blue'));
    gate.open();
    await untilSaid(telegram, { chat: ada.id, text: 'The sky is blue today.' });
    await untilAtRest(dataDir, 1);

    expect(telegram.typing.filter((typing) => typing.chatId === ada.id).length).toBeGreaterThan(0);
    expect(said(telegram, ada.id)).toEqual(['The sky is blue today.']);
    expect(countTold(dataDir, ['What colour is the sky?'])).toEqual([1]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('continues its conversation after a restart, also when it was sent while Parley was away', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir, parley, start } = await startTelegramGateway({}, onTestFinished);
    telegram.userSends({ from: ada, text: 'My cat is called Byron.' });
    await untilSaid(telegram, { chat: ada.id, text: 'You said: My cat is called Byron.' });
    await parley().stop();
    telegram.userSends({ from: ada, text: 'What is my cat called?' });
    await start();
    await untilSaid(telegram, { chat: ada.id, text: 'You said: What is my cat called?' });
    await untilAtRest(dataDir, 2);

    const { messages } = model.requests[1]?.body ?? { messages: [] };
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(messages.map((message) => blocksOf(message).at(-1)?.text)).toEqual([
      'My cat is called Byron.',
      'You said: My cat is called Byron.',
      'What is my cat called?',
    ]);
    expect(said(telegram, ada.id)).toHaveLength(2);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('from somebody unknown gets one notice and never reaches the model', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir, parley, start } = await startTelegramGateway({}, onTestFinished);
    telegram.userSends({ from: eve, text: 'Hello?' });
    await untilSaid(telegram, { chat: eve.id, text: /people I don’t know\. .*telegram:666$/ });
    telegram.userSends({ from: eve, text: '/start' });
    telegram.userSends({ from: eve, text: 'Anybody?' });
    await untilAtRest(dataDir, 3);
    await parley().stop();
    await start();
    telegram.userSends({ from: eve, text: 'Still nobody?' });
    telegram.userSends({ from: ada, text: 'I may.' });
    await untilSaid(telegram, { chat: ada.id, text: 'You said: I may.' });

    expect(said(telegram, eve.id)).toHaveLength(1);
    expect(model.requests).toHaveLength(1);
    const refused = readStore(dataDir, `select reason from ledger where outcome = 'refused'`);
    expect(refused).toEqual(Array(4).fill({ reason: 'dm-not-allowed' }));
    await untilAtRest(dataDir, 5);
    expect(findBreaches(dataDir)).toEqual([]);
  });
});

describe.concurrent('a group on Telegram', () => {
  test('is answered in its topic when Parley is mentioned or replied to, with what was said before', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({}, onTestFinished);
    const chat = telegram.world.addSupergroup('team', { isForum: true }).chat.id;
    const garden = telegram.world.addTopic(chat, 'garden', bob);
    const kitchen = telegram.world.addTopic(chat, 'kitchen', bob);
    model.script((_body, count) => ({ text: `Answer ${count}.` }));
    telegram.userSends({ chat, from: bob, threadId: garden, text: 'The roses want water.' });
    telegram.userSends({ chat, from: bob, threadId: kitchen, text: 'The oven is broken.' });
    telegram.userSends({ chat, from: ada, threadId: garden, text: '@ParleyTestBot what did Bob say?' });
    const first = await untilSaid(telegram, { chat, text: 'Answer 1.' });
    telegram.userSends({ chat, from: bob, threadId: garden, text: 'And the lawn.' });
    telegram.userSends({ chat, from: bob, threadId: garden, replyTo: first.messageId, text: 'Is that all?' });
    const second = await untilSaid(telegram, { chat, text: 'Answer 2.' });
    telegram.userSends({ chat, from: ada, text: '@ParleyTestBot and here, in General?' });
    const third = await untilSaid(telegram, { chat, text: 'Answer 3.' });
    await untilAtRest(dataDir, 6);

    expect([first, second, third].map(({ threadId }) => threadId)).toEqual([garden, garden, undefined]);
    const [one = '', two = '', general = ''] = model.requests.map(({ body }) => shown(body));
    expect(one).toMatch(/<<<untrusted [^>]*>>>\n\[Bob[^\n]*\] The roses want water\.\n<<<end untrusted/);
    expect(one).not.toContain('oven');
    expect(one).toMatch(/\[Ada[^\n]*\] @ParleyTestBot what did Bob say\?/);
    expect([timesIn(two, 'The roses want water.'), timesIn(two, 'And the lawn.')]).toEqual([1, 1]);
    expect(general).not.toContain('roses');
    expect(said(telegram, chat)).toEqual(['Answer 1.', 'Answer 2.', 'Answer 3.']);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('keeps its session when it becomes a supergroup', async ({ expect, onTestFinished }) => {
    const access = { dmPolicy: 'disabled', groupPolicy: 'allowlist', allowGroups: ['telegram:-1001'] };
    const { telegram, model, dataDir } = await startTelegramGateway({ config: { access } }, onTestFinished);
    const old = telegram.world.addGroup('family').chat.id;
    expect(old).toBe(-1001);
    telegram.userSends({ chat: old, from: ada, text: '@ParleyTestBot remember: milk' });
    await untilSaid(telegram, { chat: old, text: /remember: milk$/ });
    const gate = createGate();
    model.script((body) => ({ text: `${timesIn(shown(body), 'remember: milk')} milk`, hold: { gate } }));
    telegram.userSends({ chat: old, from: ada, text: '@ParleyTestBot what did I say?' });
    await gate.reached;
    const grown = telegram.people.migrates(old);
    gate.open();
    await untilSaid(telegram, { chat: grown, text: '2 milk' });
    telegram.userSends({ chat: grown, from: ada, text: '@ParleyTestBot and again?' });
    await telegram.waitFor(() => said(telegram, grown).length === 2);
    await untilAtRest(dataDir, 4);

    expect(said(telegram, grown)).toEqual(['2 milk', '2 milk']);
    expect(readStore(dataDir, 'select key from lanes')).toHaveLength(1);
    expect(readStore(dataDir, 'select id from sessions')).toHaveLength(1);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('is followed to its new id when only the refusal of a send tells of it', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({}, onTestFinished);
    const old = telegram.world.addGroup('family');
    const grown = telegram.world.addSupergroup('family');
    model.script((_body, count) => ({ text: `Answer ${count}.` }));
    telegram.userSends({ chat: old.chat.id, from: ada, text: '@ParleyTestBot hello' });
    old.migratedTo = grown.chat.id;
    await untilSaid(telegram, { chat: grown.chat.id, text: 'Answer 1.' });
    telegram.userSends({ chat: grown.chat.id, from: ada, text: '@ParleyTestBot and now?' });
    await untilSaid(telegram, { chat: grown.chat.id, text: 'Answer 2.' });
    await untilAtRest(dataDir, 2);
    expect(said(telegram, grown.chat.id)).toEqual(['Answer 1.', 'Answer 2.']);
    expect(readStore(dataDir, 'select key from lanes')).toHaveLength(1);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('answers several mentions that came while Parley worked together, each counted once', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({}, onTestFinished);
    const chat = telegram.world.addSupergroup('team').chat.id;
    const gate = createGate();
    model.script((_body, count) => ({ text: `Answer ${count}.`, ...(count === 1 && { hold: { gate } }) }));
    telegram.userSends({ chat, from: ada, text: '@ParleyTestBot one' });
    await gate.reached;
    for (const text of ['two', 'three', 'four'])
      telegram.userSends({ chat, from: bob, text: `@ParleyTestBot ${text}` });
    await untilLedger(dataDir, 4);
    gate.open();
    await untilSaid(telegram, { chat, text: 'Answer 2.' });
    await untilAtRest(dataDir, 4);
    expect(said(telegram, chat)).toEqual(['Answer 1.', 'Answer 2.']);
    expect(
      readStore(dataDir, 'select outcome from inbox order by seq').map(({ outcome }) => outcome),
    ).toEqual(['answered', 'merged', 'merged', 'answered']);
    const second = shown(model.requests[1]?.body ?? noBody);
    expect(['two', 'three', 'four'].map((text) => timesIn(second, `@ParleyTestBot ${text}`))).toEqual([
      1, 1, 1,
    ]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('joins an album and a split text under the one mention that stands in their first part', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({}, onTestFinished);
    const chat = telegram.world.addSupergroup('team').chat.id;
    model.script((_body, count) => ({ text: `Answer ${count}.` }));
    const photo = () => telegram.world.addFile({ name: 'p.png', mimeType: 'image/png', bytes: onePixel });
    telegram.people.sendsAlbum({ chat, from: ada, text: '@ParleyTestBot compare these' }, [
      photo(),
      photo(),
      photo(),
    ]);
    await untilSaid(telegram, { chat, text: 'Answer 1.' });
    const long = `@ParleyTestBot ${'word '.repeat(1500)}END`;
    telegram.people.sendsLong({ chat, from: ada, text: long });
    await untilSaid(telegram, { chat, text: 'Answer 2.' });
    await untilAtRest(dataDir, 5);

    expect(model.requests).toHaveLength(2);
    const images = model.requests[0]?.body.messages.flatMap(blocksOf).filter(({ type }) => type === 'image');
    expect(images).toHaveLength(3);
    expect(timesIn(shown(model.requests[1]?.body ?? noBody), 'END')).toBe(1);
    const outcomes = readStore(
      dataDir,
      'select outcome, count(*) as times from inbox group by outcome order by 1',
    );
    expect(outcomes).toEqual([
      { outcome: 'answered', times: 2 },
      { outcome: 'merged', times: 3 },
    ]);
    expect(findBreaches(dataDir)).toEqual([]);
  });
});

const onePixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

describe.concurrent('a message that comes while Parley works', () => {
  test('changes the next model request of a task that uses tools', async ({ expect, onTestFinished }) => {
    const config = { owners: ['telegram:501'] };
    const { telegram, model, dataDir } = await startTelegramGateway({ config }, onTestFinished);
    const gate = createGate();
    model.script((body, count) =>
      count === 1
        ? { toolCalls: [{ name: 'list', input: {} }], hold: { gate } }
        : { text: shown(body).includes('in French') ? 'Voilà.' : 'There you are.' },
    );
    telegram.userSends({ from: ada, text: 'List my files.' });
    await gate.reached;
    telegram.userSends({ from: ada, text: 'Please answer in French.' });
    await telegram.waitFor(() => telegram.updates.pending.length === 0);
    gate.open();
    await untilSaid(telegram, { chat: ada.id, text: 'Voilà.' });
    await untilAtRest(dataDir, 2);

    expect(model.requests).toHaveLength(2);
    const last = model.requests[1]?.body.messages.at(-1);
    expect(last && withoutNotes(last).map(({ type, text }) => text ?? type)).toEqual([
      'tool_result',
      'Please answer in French.',
    ]);
    expect(said(telegram, ada.id)).toEqual(['Voilà.']);
    expect(readStore(dataDir, 'select id from runs')).toHaveLength(1);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('does not hold back an answer that was finished', async ({ expect, onTestFinished }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({}, onTestFinished);
    const [writing, extending] = [createGate(), createGate()];
    model.script([
      { chunks: ['First ', 'answer.'], hold: { gate: writing, afterChunks: 1 } },
      { text: 'Second answer.', hold: { gate: extending } },
    ]);
    telegram.userSends({ from: ada, text: 'One.' });
    await writing.reached;
    telegram.userSends({ from: ada, text: 'Two.' });
    await telegram.waitFor(() => telegram.updates.pending.length === 0);
    writing.open();
    await extending.reached;
    await untilSaid(telegram, { chat: ada.id, text: 'First answer.' });
    expect(said(telegram, ada.id)).toEqual(['First answer.']);
    extending.open();
    await untilSaid(telegram, { chat: ada.id, text: 'Second answer.' });
    await untilAtRest(dataDir, 2);

    expect(said(telegram, ada.id)).toEqual(['First answer.', 'Second answer.']);
    expect(readStore(dataDir, 'select id from runs')).toHaveLength(1);
    expect(countTold(dataDir, ['One.', 'Two.'])).toEqual([1, 1]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('is read as it was edited, and a reaction is shown at the next turn', async ({
    expect,
    onTestFinished,
  }) => {
    const config = { queue: { dm: { mode: 'followup' } } };
    const { telegram, model, dataDir } = await startTelegramGateway({ config }, onTestFinished);
    const gate = createGate();
    model.script((_body, count) => ({ text: `Answer ${count}.`, ...(count === 1 && { hold: { gate } }) }));
    const running = telegram.userSends({ from: ada, text: 'Count to tree.' });
    await gate.reached;
    const waiting = telegram.userSends({ from: ada, text: 'Then to for.' });
    await telegram.waitFor(() => telegram.updates.pending.length === 0);
    telegram.people.edits({ chat: ada.id, messageId: waiting.messageId, text: 'Then to four.' });
    telegram.people.edits({ chat: ada.id, messageId: running.messageId, text: 'Count to three.' });
    await untilLedger(dataDir, 4);
    gate.open();
    await untilSaid(telegram, { chat: ada.id, text: 'Answer 3.' });
    const [first] = telegram.botMessages(ada.id);
    telegram.people.reacts({ chat: ada.id, from: ada, messageId: first?.messageId ?? 0, emoji: '👍' });
    telegram.people.edits({ chat: ada.id, messageId: running.messageId, text: 'Count to five.' });
    await untilLedger(dataDir, 6);
    telegram.userSends({ from: ada, text: 'Thanks.' });
    await untilSaid(telegram, { chat: ada.id, text: 'Answer 4.' });
    await untilAtRest(dataDir, 7);

    const [, corrected = '', followed = '', last = ''] = model.requests.map(({ body }) => shown(body));
    expect(corrected).toContain('(Correction of an earlier message.) Count to three.');
    expect(corrected).not.toContain('Then to');
    expect(followed).toContain('Then to four.');
    expect(last).not.toContain('Then to for.');
    expect(timesIn(last, 'Ada reacted with 👍')).toBe(1);
    expect(timesIn(last, 'It now reads:')).toBe(1);
    expect(timesIn(last, 'Count to five.')).toBe(1);
    expect(said(telegram, ada.id)).toEqual(['Answer 1.', 'Answer 2.', 'Answer 3.', 'Answer 4.']);
    expect(findBreaches(dataDir)).toEqual([]);
  });
});

describe.concurrent('a command on Telegram', () => {
  test('stops the answer in progress and what its sender sent after it', async ({
    expect,
    onTestFinished,
  }) => {
    const config = { queue: { dm: { mode: 'followup' } } };
    const { telegram, model, dataDir } = await startTelegramGateway({ config }, onTestFinished);
    const gate = createGate();
    model.script((_body, count) =>
      count === 1 ? { text: 'Never said.', hold: { gate } } : { text: 'Here.' },
    );
    telegram.userSends({ from: ada, text: 'Write a novel.' });
    await gate.reached;
    telegram.userSends({ from: ada, text: 'And another.' });
    telegram.userSends({ from: ada, text: '/stop' });
    await untilSaid(telegram, { chat: ada.id, text: 'Stopped.' });
    await untilAtRest(dataDir, 3);
    gate.open();
    telegram.userSends({ from: ada, text: '/stop' });
    await untilSaid(telegram, { chat: ada.id, text: 'Nothing is running.' });
    telegram.userSends({ from: ada, text: 'Are you there?' });
    await untilSaid(telegram, { chat: ada.id, text: 'Here.' });
    await untilAtRest(dataDir, 5);

    expect(said(telegram, ada.id)).toEqual(['Stopped.', 'Nothing is running.', 'Here.']);
    const outcomes = readStore(dataDir, 'select outcome, outcomeReason from inbox order by seq');
    expect(outcomes).toEqual([
      { outcome: 'cancelled', outcomeReason: 'stop' },
      { outcome: 'cancelled', outcomeReason: 'stop' },
      { outcome: 'answered', outcomeReason: null },
    ]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('is the Stop button of a draft as well', async ({ expect, onTestFinished }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({}, onTestFinished);
    const gate = createGate();
    model.script([{ chunks: ['A long ', 'story'], hold: { gate, afterChunks: 1 } }, { text: 'Here.' }]);
    telegram.userSends({ from: ada, text: 'Tell me.' });
    await telegram.waitFor(() => telegram.drafts.length > 0);
    telegram.people.stopsDraft(ada.id);
    await untilSaid(telegram, { chat: ada.id, text: 'Stopped.' });
    await untilAtRest(dataDir, 2);
    gate.open();
    telegram.userSends({ from: ada, text: 'Are you there?' });
    await untilSaid(telegram, { chat: ada.id, text: 'Here.' });
    await untilAtRest(dataDir, 3);
    expect(said(telegram, ada.id)).toEqual(['Stopped.', 'Here.']);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('puts the conversation aside at once, aborting the answer in progress', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({}, onTestFinished);
    const gate = createGate();
    model.script((_body, count) =>
      count === 1 ? { text: 'Never said.', hold: { gate } } : { text: 'Fresh.' },
    );
    telegram.userSends({ from: ada, text: 'Write a novel.' });
    await gate.reached;
    telegram.userSends({ from: ada, text: '/new' });
    telegram.userSends({ from: ada, text: 'Hello.' });
    await untilSaid(telegram, { chat: ada.id, text: 'Fresh.' });
    await untilAtRest(dataDir, 3);
    gate.open();
    expect(said(telegram, ada.id)).toEqual([expect.stringMatching(/^Started a new conversation/), 'Fresh.']);
    expect(shown(model.requests[1]?.body ?? noBody)).toBe('Hello.');
    expect(readStore(dataDir, 'select outcome, outcomeReason as reason from inbox order by seq')).toEqual([
      { outcome: 'cancelled', reason: 'reset' },
      { outcome: 'answered', reason: 'command' },
      { outcome: 'answered', reason: null },
    ]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('greets, helps, tells the status and the queue, and begins a new conversation', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({}, onTestFinished);
    for (const text of ['/start', '/help', '/status', '/queue', '/queue followup', '/queue reset'])
      telegram.userSends({ from: ada, text });
    await telegram.waitFor(() => said(telegram, ada.id).length === 6);
    telegram.userSends({ from: ada, text: 'Remember the milk.' });
    telegram.userSends({ from: ada, text: '/new' });
    telegram.userSends({ from: ada, text: 'What should I remember?' });
    await untilSaid(telegram, { chat: ada.id, text: 'You said: What should I remember?' });
    await untilAtRest(dataDir, 9);

    const [start, help, status, queue, followup, reset] = said(telegram, ada.id);
    expect(start).toMatch(/^Hello!/);
    expect(help).toMatch(/\/stop .*\n[\s\S]*\/queue /);
    expect(status).toMatch(/model anthropic\/claude/);
    expect([queue, followup, reset]).toEqual([
      expect.stringMatching(/^Queue: steer /),
      expect.stringMatching(/^Queue: followup /),
      expect.stringMatching(/steer /),
    ]);
    expect(telegram.platform.commands.map(({ command }) => command)).toContain('stop');
    expect(
      said(telegram, ada.id).filter((text) => text.startsWith('Started a new conversation')),
    ).toHaveLength(1);
    expect(shown(model.requests.at(-1)?.body ?? noBody)).not.toContain('milk');
    expect(findBreaches(dataDir)).toEqual([]);
  });
});

describe.concurrent('more than Parley takes in', () => {
  const drops = [
    {
      drop: 'summarize',
      notice: /so I’ll read your oldest as one line/,
      outcome: 'merged',
      reason: 'summarized',
    },
    {
      drop: 'old',
      notice: /^Too many messages are waiting, so I dropped your oldest: “(One|Two)\.”$/,
      outcome: 'refused',
      reason: 'queue-full',
    },
  ] as const;

  test.for(drops)(
    'is told each time and recorded (drop: $drop)',
    async ({ drop, notice, outcome, reason }, { expect, onTestFinished }) => {
      const config = { queue: { dm: { mode: 'followup', cap: 2, drop } } };
      const { telegram, model, dataDir } = await startTelegramGateway({ config }, onTestFinished);
      const gate = createGate();
      model.script((_body, count) => ({ text: `Answer ${count}.`, ...(count === 1 && { hold: { gate } }) }));
      telegram.userSends({ from: ada, text: 'Zero.' });
      await gate.reached;
      for (const text of ['One.', 'Two.', 'Three.', 'Four.']) telegram.userSends({ from: ada, text });
      await telegram.waitFor(() => said(telegram, ada.id).filter((text) => notice.test(text)).length === 2);
      gate.open();
      await untilSaid(telegram, { chat: ada.id, text: 'Answer 3.' });
      await untilAtRest(dataDir, 5);
      const rows = readStore(dataDir, 'select outcome, outcomeReason as reason from inbox order by seq');
      const answered = { outcome: 'answered', reason: null };
      expect(rows).toEqual([answered, { outcome, reason }, { outcome, reason }, answered, answered]);
      const next = shown(model.requests[1]?.body ?? noBody);
      expect(['One.', 'Two.'].map((text) => timesIn(next, text))).toEqual(drop === 'old' ? [0, 0] : [1, 1]);
      expect(said(telegram, ada.id)).toHaveLength(5);
      expect(findBreaches(dataDir)).toEqual([]);
    },
  );

  test('is refused with one notice when one person writes too fast', async ({ expect, onTestFinished }) => {
    const config = { rateLimit: { perSenderPerMinute: 2 }, queue: { dm: { mode: 'followup' } } };
    const { telegram, dataDir } = await startTelegramGateway({ config }, onTestFinished);
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

describe.concurrent('who may do what in a group', () => {
  test('is decided by ids: the owner turns mentions off, a guest cannot, another group hears nothing', async ({
    expect,
    onTestFinished,
  }) => {
    const access = { dmPolicy: 'disabled', groupPolicy: 'allowlist', allowGroups: ['telegram:-1001'] };
    const settings = { config: { access, owners: ['telegram:501'] } };
    const { telegram, model, dataDir } = await startTelegramGateway(settings, onTestFinished);
    const chat = telegram.world.addGroup('family').chat.id;
    const strange = telegram.world.addGroup('strangers').chat.id;
    telegram.userSends({ chat: strange, from: bob, text: '@ParleyTestBot hello?' });
    telegram.userSends({ chat, from: bob, text: '/activation@ParleyTestBot always' });
    telegram.userSends({ chat, from: bob, text: 'Nobody is asked.' });
    await untilLedger(dataDir, 3);
    telegram.userSends({ chat, from: ada, text: '/activation@ParleyTestBot always' });
    await untilSaid(telegram, { chat, text: 'I now answer every message here.' });
    telegram.userSends({ chat, from: bob, text: 'And now?' });
    await untilSaid(telegram, { chat, text: /And now\?$/ });
    telegram.userSends({ chat, from: bob, text: '/stop all' });
    telegram.userSends({ chat, from: bob, text: '/whoami' });
    await untilSaid(telegram, { chat, text: /^You are telegram:502, here as guest\./ });
    await untilAtRest(dataDir, 7);
    expect(said(telegram, strange)).toEqual([]);
    expect(model.requests.every(({ body }) => !shown(body).includes('hello?'))).toBe(true);
    expect(findBreaches(dataDir)).toEqual([]);
  });
});

describe.concurrent('a person who blocks the bot', () => {
  test('while an answer is due makes the conversation unreachable until they come back', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({}, onTestFinished);
    const gate = createGate();
    model.script((_body, count) => ({ text: `Answer ${count}.`, ...(count === 1 && { hold: { gate } }) }));
    telegram.userSends({ from: ada, text: 'One.' });
    await gate.reached;
    telegram.people.blocks(ada);
    await untilLedger(dataDir, 2);
    gate.open();
    await untilAtRest(dataDir, 2);
    expect(said(telegram, ada.id)).toEqual([]);
    expect(readStore(dataDir, 'select outcome from inbox')).toEqual([{ outcome: 'failed' }]);
    expect(findBreaches(dataDir)).toEqual([]);

    telegram.people.unblocks(ada);
    telegram.userSends({ from: ada, text: 'Two.' });
    await untilSaid(telegram, { chat: ada.id, text: 'Answer 2.' });
    await untilAtRest(dataDir, 4);
    expect(said(telegram, ada.id)).toEqual(['Answer 2.']);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('is noticed at the send when the platform told nothing before', async ({ expect, onTestFinished }) => {
    const { telegram, dataDir } = await startTelegramGateway({}, onTestFinished);
    telegram.world.addPrivateChat(ada);
    telegram.userSends({ from: ada, text: 'One.' });
    telegram.world.addPrivateChat(ada).isBlocked = true;
    await untilAtRest(dataDir, 1);

    expect(said(telegram, ada.id)).toEqual([]);
    expect(readStore(dataDir, 'select outcome, outcomeReason from inbox')).toEqual([
      { outcome: 'failed', outcomeReason: 'delivery failed' },
    ]);
    const [conversation] = readStore(dataDir, 'select unreachableAt from conversations');
    expect(conversation?.unreachableAt).not.toBeNull();
    expect(findBreaches(dataDir)).toEqual([]);
  });
});
