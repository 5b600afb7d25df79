/** Messages that used to vanish or to lose their content, through a running gateway to the model. */

import { describe, test } from 'vitest';
import { createGate } from '../platforms/anthropic/gate.ts';
import { blocksOf, type WireBody } from '../platforms/anthropic/wire.ts';
import { onePixel } from '../support/one-pixel.ts';
import { imagesIn } from './asking.ts';
import { readStore } from './conservation.ts';
import { shareGateway, type Talk } from './shared-gateway.ts';
import { until } from './until.ts';

const [editor, commenter] = [590, 591];
const followup = { mode: 'followup' };
const conversations = { [`telegram:${editor}`]: followup, [`telegram:${commenter}`]: followup };
const aTalk = shareGateway({ config: { queue: { conversations } } });

const paragraph = (text: unknown) => ({ type: 'paragraph', text });
const richly = (...blocks: readonly unknown[]) => ({ rich_message: { blocks } });

function textsIn({ messages }: Pick<WireBody, 'messages'>): string {
  return messages.flatMap((message) => blocksOf(message).map(({ text = '' }) => text)).join('\n');
}
const lastOf = (talk: Talk) => talk.requests().at(-1)?.body ?? { messages: [], model: '', max_tokens: 1 };
const readLast = (talk: Talk) => textsIn(lastOf(talk));

/** Sends a message of these fields, waits for the answer, and returns everything that the model was shown. */
async function ask(talk: Talk, fields: Readonly<Record<string, unknown>>, text = ''): Promise<string> {
  talk.script((_body, count) => ({ text: `Answer ${count}.` }));
  talk.telegram.userSends({ from: talk.from, text, fields });
  await talk.untilSaid('Answer 1.');
  return readLast(talk);
}

describe.concurrent('on Telegram', () => {
  test('shows the model a rich message as Markdown', async ({ expect }) => {
    const talk = aTalk();
    const heading = { type: 'heading', text: `List ${talk.mark}`, size: 2 };
    const read = await ask(talk, richly(heading, paragraph(['buy ', { type: 'bold', text: 'lemons' }])));
    expect(read).toContain(`## List ${talk.mark}\n\nbuy **lemons**`);
  });

  test('reads a waiting message that was edited to a rich one as edited', async ({ expect }) => {
    const talk = aTalk('direct', editor);
    const { telegram, chat } = talk;
    const gate = createGate();
    talk.script((_body, count) => ({ text: `Answer ${count}.`, ...(count === 1 && { hold: { gate } }) }));
    talk.says(`A slow question, ${talk.mark}.`);
    await gate.reached;
    const waiting = talk.says('buy milk');
    await talk.untilHeard();
    telegram.people.edits({ chat, messageId: waiting.messageId, fields: richly(paragraph('buy oat milk')) });
    await talk.untilHeard();
    expect(talk.rows('inbox', 'content').at(-1)?.content).toContain('"text":"buy oat milk"');
    gate.open();
    await talk.untilSaid('Answer 2.');
    expect(readLast(talk)).toContain('buy oat milk');
    expect(readLast(talk)).not.toContain('buy milk');
  });

  test('keeps a message after an unreadable edit, and tells its sender', async ({ expect }) => {
    const talk = aTalk('direct', commenter);
    const { telegram, chat } = talk;
    const gate = createGate();
    talk.script((_body, count) => ({ text: `Answer ${count}.`, ...(count === 1 && { hold: { gate } }) }));
    talk.says(`A slow question, ${talk.mark}.`);
    await gate.reached;
    const waiting = talk.says('buy milk');
    await talk.untilHeard();
    telegram.people.edits({ chat, messageId: waiting.messageId, fields: { hologram: { size: 3 } } });
    await talk.untilSaid(/hologram/);
    gate.open();
    await talk.untilSaid('Answer 2.');
    expect(readLast(talk)).toContain('buy milk');
  });

  test('shows the model the address behind a linked word', async ({ expect }) => {
    const talk = aTalk();
    const text = `Read this ${talk.mark}`;
    const entities = [{ type: 'text_link', offset: 5, length: 4, url: 'https://example.org/a?id=42' }];
    expect(await ask(talk, { entities }, text)).toContain('Read [this](https://example.org/a?id=42) ');
  });

  test.for([
    ['a poll', { poll: { question: 'Pizza or pasta?', options: [{ text: 'Pizza' }, { text: 'Pasta' }] } }],
    ['a contact', { contact: { phone_number: '+15550100', first_name: 'Carla' } }],
    ['a die', { dice: { emoji: '🎲', value: 4 } }],
  ] as const)('shows the model %s in a line marked as data', async ([, fields], { expect }) => {
    const talk = aTalk();
    talk.script((_body, count) => ({ text: `Answer ${count}.` }));
    talk.says(`Look at this, ${talk.mark}.`);
    await talk.untilSaid('Answer 1.');
    talk.telegram.userSends({ from: talk.from, fields });
    await talk.untilSaid('Answer 2.');
    expect(readLast(talk)).toMatch(
      /<<<untrusted [^>]*>>>\n\[(?:Poll: Pizza or pasta\?; 1\) Pizza|Contact: Carla|Dice: 🎲)/,
    );
  });

  test('shows the model the picture that a question quotes, even in a new group', async ({ expect }) => {
    const talk = aTalk('group');
    const { telegram, chat, from, mark } = talk;
    talk.script((_body, count) => ({ text: `Answer ${count}.` }));
    const file = telegram.world.addFile({ name: 'p.png', mimeType: 'image/png', bytes: onePixel });
    const state = telegram.world.state(chat);
    const bea = { id: 801, is_bot: false, first_name: 'Bea' };
    const photo = [
      { file_id: file.id, file_unique_id: 'u1', width: 1, height: 1, file_size: file.sizeBytes },
    ];
    const before = telegram.world.add(state, { from: bea, fields: { photo } });
    telegram.userSends({
      chat,
      from,
      replyTo: before.messageId,
      text: `@ParleyTestBot what is this, ${mark}?`,
    });
    await talk.untilSaid('Answer 1.');
    expect(imagesIn(lastOf(talk))).toBe(1);
    expect(readLast(talk)).toMatch(/quote from Bea/);
  });

  test('adds a picture without words to the message that mentions the bot', async ({ expect }) => {
    const talk = aTalk('group');
    const { telegram, chat, from, mark } = talk;
    talk.script((_body, count) => ({ text: `Answer ${count}.` }));
    const photo = telegram.world.addFile({ name: 'p.png', mimeType: 'image/png', bytes: onePixel });
    const bea = { id: 802, is_bot: false, first_name: 'Bea' };
    telegram.userSends({ chat, from: bea, photo });
    const gone = [{ file_id: 'gone', file_unique_id: 'u9', width: 1, height: 1, file_size: 9 }];
    telegram.userSends({ chat, from: bea, fields: { photo: gone } });
    telegram.userSends({ chat, from, fields: { dice: { emoji: '🎲', value: 4 } } });
    telegram.userSends({ chat, from, text: `@ParleyTestBot what did I send, ${mark}?` });
    await talk.untilSaid('Answer 1.');
    expect(readLast(talk)).toContain('[Dice: 🎲 shows 4]');
    expect(imagesIn(lastOf(talk))).toBe(1);
    expect(readLast(talk)).toMatch(
      /The files below came with an earlier message by Bea;[^\n]*\n\[attachment image is missing: [^\n]+\]/,
    );
    expect(readLast(talk)).toContain('[picture]');
  });

  test('keeps the caption of each picture of an album', async ({ expect }) => {
    const talk = aTalk();
    const { telegram, from, mark } = talk;
    talk.script((_body, count) => ({ text: `Answer ${count}.` }));
    const send = (text: string) =>
      telegram.userSends({
        from,
        text,
        photo: telegram.world.addFile({ name: 'p.png', mimeType: 'image/png', bytes: onePixel }),
        album: '139',
      });
    send(`before ${mark}`);
    send('');
    send('after');
    await talk.untilSaid('Answer 1.');
    expect(imagesIn(lastOf(talk))).toBe(3);
    expect(readLast(talk)).toMatch(/before no\d+[\s\S]*after/);
  });

  test.for([
    ['right after it', false],
    ['while the model reads it', true],
  ] as const)(
    'answers a comment and the post that arrives %s in one run',
    async ([, isReading], { expect }) => {
      const talk = aTalk();
      const { telegram, from, mark } = talk;
      const gate = createGate();
      talk.script((_body, count) => ({ text: `Answer ${count}.`, hold: { gate } }));
      const forward_origin = {
        type: 'channel',
        date: 1,
        chat: { id: -1007, type: 'channel', title: 'News' },
        message_id: 9,
      };
      talk.says(`What do you think about this, ${mark}?`);
      if (isReading) await gate.reached;
      telegram.userSends({ from, text: 'Cheese prices doubled', fields: { forward_origin } });
      await talk.untilHeard();
      gate.open();
      await talk.untilAtRest(2);
      const [run, ...others] = talk.rows('runs', 'id');
      expect(others).toEqual([]);
      // The call that was given up costs what it had read and written, about 10,000, not what was reserved for it.
      const calls = readStore(
        talk.dataDir,
        'select state, cost from modelCalls where runId = ? order by id',
        run?.id,
      );
      const states = calls.map(({ state }) => state);
      expect(states).toEqual([...states.slice(1).map(() => 'unknown'), 'settled']);
      if (isReading) expect(states).toHaveLength(2);
      for (const { cost } of calls) expect(cost).toBeLessThan(20_000);
      expect(talk.said()).toEqual([`Answer ${talk.requests().length}.`]);
      expect(readLast(talk)).toContain(`What do you think about this, ${mark}?`);
      expect(readLast(talk)).toMatch(/forwarded from News>>>\nCheese prices doubled/);
    },
  );

  test('shows a ticked task at the next turn without starting one', async ({ expect }) => {
    const talk = aTalk();
    const tasks = [{ id: 1, text: 'dig' }];
    const fields = {
      checklist_tasks_done: {
        checklist_message: { checklist: { title: 'Garden', tasks } },
        marked_as_done_task_ids: [1],
      },
    };
    talk.telegram.userSends({ from: talk.from, fields });
    await talk.untilHeard();
    expect(await ask(talk, {}, `What is done, ${talk.mark}?`)).toContain(
      '[Checklist changed: Garden; done: dig]',
    );
    await talk.untilAtRest(1);
    expect(talk.requests()).toHaveLength(1);
  });

  test('reports a message of an unknown kind to the model and to its sender', async ({ expect }) => {
    const talk = aTalk();
    talk.script((_body, count) => ({ text: `Answer ${count}.` }));
    talk.says(`Look at this, ${talk.mark}.`);
    await talk.untilSaid('Answer 1.');
    talk.telegram.userSends({ from: talk.from, fields: { hologram: { size: 3 } } });
    await talk.untilSaid('Answer 2.');
    await until(() => talk.said().some((text) => text.includes('hologram')), { what: 'the notice' });
    expect(readLast(talk)).toContain('hologram');
  });
});
