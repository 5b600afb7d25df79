/** What intake recognizes by ids alone: replies to the bot's own messages, and repeated keys. */

import { expect, it } from 'vitest';
import type { InboundEvent } from '../../src/contracts/envelope.ts';
import { messageId } from '../../src/contracts/ids.ts';
import type { Log } from '../../src/contracts/log.ts';
import type { InboundDeps } from '../../src/inbound/intake.ts';
import { aCourier } from '../store/a-conversation.ts';
import { demoOnly, framing, holder, routeFor } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { silentLog } from '../support/silent-log.ts';
import { type Account, anAccount, anEnvelope, createIntakeFixture } from './support/intake-fixture.ts';

const noon = Date.UTC(2026, 0, 1, 12);

describeEachDatabase('a reply that names only a message id', (open) => {
  it("counts a reply that names only a message id as addressed if the message is the bot's", async () => {
    const town = createIntakeFixture(open());
    const ann = anAccount('alpha');
    const group = `-${crypto.randomUUID()}`;
    const conversationKey = `alpha/bot/${group}`;
    const lane = town.laneOf(await town.send(ann, 'hello', { group, mentionsBot: true }));
    const run = await town.worker.claimRun(lane);
    const content = { kind: 'text', text: { text: 'an answer', spans: [] } } as const;
    await town.worker.answer(run, 'an answer', {
      parts: [{ route: routeFor(run), content, purpose: 'reply' }],
    });
    await aCourier(open(), conversationKey).deliver({ kind: 'sent', receipts: [messageId('own-1')] });

    const unmentioned = { kind: 'ignored', reason: 'not-mentioned' };
    expect(await town.send(ann, aReply(ann, 'foreign-1'), { group })).toEqual(unmentioned);
    expect(await town.send(ann, aReply(ann, 'own-1'), { group: `${group}0` })).toEqual(unmentioned);
    expect(await town.send(ann, aReply(ann, 'own-1'), { group })).toMatchObject({ kind: 'accepted' });
  });
});

describeEachDatabase('a repeated event key', (open) => {
  it.each([
    ['with the same content', { text: 'one', sentAt: noon }, 0],
    ['that was edited meanwhile', { text: 'two', sentAt: noon }, 0],
    ['with an implausible date', { text: 'one', sentAt: noon + 1000 }, 0],
    ['with another date and text', { text: 'two', sentAt: noon + 1000 }, 1],
  ])(
    'treats an event %s as a duplicate, and logs one that can hardly be the same',
    async (_, again, lines) => {
      const warned: unknown[] = [];
      const log: Log = { ...silentLog, warn: (fields, event) => void warned.push([event, fields]) };
      const town = createIntakeFixture(open(), { log, access: { dmPolicy: 'disabled' } });
      const ann = anAccount('alpha');
      const eventKey = `message:${crypto.randomUUID()}`;
      // This also applies to refused messages.
      expect(await town.send(ann, 'one', { eventKey, sentAt: noon })).toMatchObject({ kind: 'refused' });
      expect(await town.send(ann, again.text, { eventKey, sentAt: again.sentAt })).toEqual({
        kind: 'duplicate',
        of: { outcome: 'refused', reason: 'dm-disabled' },
      });
      expect(warned).toHaveLength(lines);
      if (lines > 0) expect(warned).toEqual([['intake.id-reused', { account: 'alpha/bot', eventKey }]]);
    },
  );
});

describeEachDatabase('the received meter', (open) => {
  it('counts each stored decision with its reason, for fresh and repeated events', async () => {
    const counted: unknown[] = [];
    const meters: InboundDeps['meters'] = {
      received: (channel, acceptances) => counted.push([channel, acceptances]),
    };
    const town = createIntakeFixture(open(), { meters });
    const ann = anAccount('alpha');
    const group = `-${crypto.randomUUID()}`;
    const eventKey = `message:${crypto.randomUUID()}`;
    const [first, again] = [
      await town.send(ann, 'aside', { group, eventKey }),
      await town.send(ann, 'aside', { group, eventKey }),
    ];
    expect(first).toEqual({ kind: 'ignored', reason: 'not-mentioned' });
    expect(again).toMatchObject({ kind: 'duplicate' });
    expect(counted).toEqual([
      ['alpha', [first]],
      ['alpha', [again]],
    ]);
  });
});

describeEachDatabase('an event whose ids name no conversation', (open) => {
  it('stores an event whose ids name no conversation as unreadable, and delays no other event', async () => {
    const town = createIntakeFixture(open());
    const ann = anAccount('alpha');
    const scene = { mentionsBot: true, group: '' };
    const events = [anEnvelope(ann, 'from nowhere', scene), anEnvelope(ann, 'hello')];
    expect(await town.accept(ann, events)).toMatchObject([
      { kind: 'refused', reason: 'unreadable' },
      { kind: 'accepted' },
    ]);
  });
});

describeEachDatabase("a message for a lane that can't be claimed", (open, beside) => {
  it("accepts a message for a lane that can't be claimed", async () => {
    const terms = { holder, leaseMs: 10_000, framing, maxAttempts: 3, models: demoOnly, class: 'main' };
    let isFree = false;
    const town = createIntakeFixture(open(), {
      reserve: () =>
        isFree
          ? { terms: { ...terms, newRunIds: [crypto.randomUUID()] }, begin: () => undefined }
          : undefined,
    });
    const ann = anAccount('alpha');
    const lane = town.laneOf(await town.send(ann, 'hello'));
    await beside.sql(`update inbox set content = '{' where "laneKey" = '${lane}'`);
    isFree = true;
    expect(await town.send(ann, 'are you there?')).toMatchObject({ kind: 'accepted' });
  });
});

function aReply(from: Account, to: string): InboundEvent {
  const { event } = anEnvelope(from, 'why?');
  if (event.kind !== 'message') throw new Error(`a ${event.kind}`);
  return { ...event, repliesTo: messageId(to) };
}
