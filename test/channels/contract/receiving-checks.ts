import { expect } from 'vitest';
import { isSameRoute } from '#contracts/route.ts';
import { checksOf } from './check.ts';

export const receivingChecks = checksOf('receiving', {
  "hands over a person's message with the route of its answer": async (trial) => {
    const { harness } = trial;
    await trial.begin();
    await harness.personSays('hello there');
    const envelope = await trial.first('message');
    expect(envelope.event.text).toBe('hello there');
    expect(isSameRoute(envelope.route, harness.route)).toBe(true);
    expect(envelope.sender).toMatchObject({ isSelf: false, isBot: false });
    expect(envelope.sender.id).not.toBe('');
    expect(envelope.route.account).toBe(harness.account);
  },

  'keeps the thread in the route': async (trial) => {
    const say = trial.need(trial.harness.personSaysInThread);
    await trial.begin();
    const route = await say('in the thread');
    const envelope = await trial.first('message');
    expect(route.thread).toBeDefined();
    expect(isSameRoute(envelope.route, route)).toBe(true);
  },

  'marks messages and edits that their sender typed as typed': async (trial) => {
    const { personSays, personEdits } = trial.harness;
    await trial.begin();
    await personSays('my own words');
    expect((await trial.first('message')).event.provenance).toBe('typed');
    if (personEdits === undefined) return;
    await personEdits('other words of mine');
    expect((await trial.first('edit')).event.provenance).toBe('typed');
  },

  'does not mark a forwarded text as typed': async (trial) => {
    const forward = trial.need(trial.harness.personForwards);
    await trial.begin();
    await forward('/stop all');
    const { event, sender } = await trial.first('message');
    expect(event.text).toBe('/stop all');
    expect(sender.isSelf).toBe(false);
    expect(event.provenance).not.toBe('typed');
  },

  'keeps the order in which people wrote': async (trial) => {
    await trial.begin();
    for (const text of ['one', 'two', 'three', 'four']) await trial.harness.personSays(text);
    await trial.untilTexts(4);
    expect(trial.intake.texts).toEqual(['one', 'two', 'three', 'four']);
  },

  'gives two equal texts different event keys': async (trial) => {
    await trial.begin();
    await trial.harness.personSays('again');
    await trial.harness.personSays('again');
    await trial.untilTexts(2);
    expect(new Set(trial.intake.events.map((envelope) => envelope.eventKey)).size).toBe(2);
  },

  'gives a redelivered event the same key': async (trial) => {
    const redeliver = trial.need(trial.harness.redeliver);
    await trial.begin();
    await trial.harness.personSays('only once');
    await trial.untilTexts(1);
    const handed = trial.intake.batches.length;
    await redeliver();
    await trial.intake.waitFor(() => trial.intake.batches.length > handed);
    expect(trial.intake.texts).toEqual(['only once']);
  },

  "marks the bot's own messages as its own": async (trial) => {
    const echo = trial.need(trial.harness.botEchoes);
    await trial.begin();
    await echo('an echo');
    await trial.harness.personSays('a person');
    await trial.intake.waitFor(() => trial.intake.texts.includes('a person'));
    const foreign = trial.all('message').filter(({ sender }) => !sender.isSelf);
    expect(foreign.map(({ event }) => event.text)).toEqual(['a person']);
  },

  'keeps an unreadable event raw and continues': async (trial) => {
    const { intake } = trial;
    const sendMalformed = trial.need(trial.harness.sendsMalformed);
    await trial.begin();
    await sendMalformed();
    await trial.harness.personSays('after the bad one');
    await intake.waitFor(() => intake.texts.includes('after the bad one'));
    expect(intake.unreadable).toHaveLength(1);
    expect(intake.unreadable[0]?.raw).not.toBe('');
    expect(intake.unreadable[0]?.problem).not.toBe('');
  },

  'reports that receiving is interrupted, and that it works again': async (trial) => {
    const { intake } = trial;
    const goAway = trial.need(trial.harness.receivingAway);
    await trial.begin();
    const comeBack = await goAway();
    const problem = await intake.waitFor(() => intake.troubles.find((trouble) => trouble !== undefined));
    expect(problem.detail).not.toBe('');
    await comeBack();
    await intake.waitFor(() => intake.troubles.length > 0 && intake.troubles.at(-1) === undefined);
    await trial.harness.personSays('well again');
    await trial.untilTexts(1);
  },
});

export const changeChecks = checksOf('edits, deletes and reactions', {
  'hands over each edit with its whole text under its own key': async (trial) => {
    const edit = trial.need(trial.harness.personEdits);
    await trial.begin();
    await trial.harness.personSays('the frist');
    const { event, eventKey } = await trial.first('message');
    await edit('the first');
    await edit('the very first');
    await trial.intake.waitFor(() => trial.all('edit').length === 2);
    const edits = trial.all('edit');
    expect(edits.map((one) => one.event.text)).toEqual(['the first', 'the very first']);
    expect(new Set(edits.map((one) => one.event.messageId))).toEqual(new Set([event.messageId]));
    expect(new Set([eventKey, ...edits.map((one) => one.eventKey)]).size).toBe(3);
  },

  'gives an edit the route and the sender of its message': async (trial) => {
    const edit = trial.need(trial.harness.personEdits);
    await trial.begin();
    await trial.harness.personSays('before');
    await edit('after');
    const after = await trial.first('edit');
    const before = await trial.first('message');
    expect(isSameRoute(after.route, before.route)).toBe(true);
    expect(after.sender.id).toBe(before.sender.id);
    expect(after.sender.isSelf).toBe(false);
  },

  "hands over a deletion with the deleted message's id": async (trial) => {
    const remove = trial.need(trial.harness.personDeletes);
    await trial.begin();
    await trial.harness.personSays('never mind');
    const { event, route } = await trial.first('message');
    await remove();
    const removal = await trial.first('delete');
    expect(removal.event.messageId).toBe(event.messageId);
    expect(isSameRoute(removal.route, route)).toBe(true);
  },

  'hands over a reaction and its removal under different keys': async (trial) => {
    const react = trial.need(trial.harness.personReacts);
    await trial.begin();
    await trial.harness.personSays('well said');
    const { event } = await trial.first('message');
    await react('👍', 'put');
    await react('👍', 'taken-back');
    await trial.intake.waitFor(() => trial.all('reaction').length === 2);
    const reactions = trial.all('reaction');
    expect(reactions.map((one) => one.event)).toEqual([
      { kind: 'reaction', messageId: event.messageId, emoji: '👍', isRemoved: false },
      { kind: 'reaction', messageId: event.messageId, emoji: '👍', isRemoved: true },
    ]);
    expect(new Set(reactions.map((one) => one.eventKey)).size).toBe(2);
  },
});
