import { expect, it } from 'vitest';
import { messageId } from '#contracts/ids.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import type { Alert } from '#contracts/owner-alert.ts';
import {
  dismissNotice,
  isAlertOpen,
  raiseAlert,
  readOpenAlerts,
  resolveAlert,
} from '../../../src/store/alerts/alert.ts';
import { type OwnerSearch, readOwnerRoute } from '../../../src/store/alerts/owner-route.ts';
import type { StoreQuery } from '../../../src/store/base/command.ts';
import { dropPart } from '../../../src/store/delivery/operator-actions.ts';
import {
  type AlertMessageInput,
  queueAlertMessage,
  readOpenNotices,
  readPendingNotices,
} from '../../../src/store/delivery/queue-alert-message.ts';
import { readPartStates } from '../../../src/store/delivery/tool-send.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { aConversation, aCourier } from '../a-conversation.ts';
import { aLane, aMessage, aRoute, aWorker, endWithout, routeFor, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

const readStoredKinds: StoreQuery<{ readonly subject: string }, readonly { readonly kind: string }[]> = {
  query: 'readStoredKinds',
  run: ({ db }, { subject }) =>
    db.selectFrom('ownerNotices').select('kind').where('subject', 'like', `%${subject}`).execute(),
};

describeEachDatabase('alerts', (open, { sql }) => {
  const openOf = async (subject: string) =>
    (await open().read(readOpenNotices, { limit: 1000 })).filter((one) => one.subject === subject);
  const pendingOf = async (subject: string) =>
    (await open().read(readPendingNotices, { limit: 1000 })).filter((one) => one.subject === subject);
  const raise = (trouble: Alert) => open().write(raiseAlert, trouble);
  const tell = (id: string, over: Partial<AlertMessageInput> = {}) =>
    open().write(queueAlertMessage, {
      id,
      step: 'raised',
      text: 'it is down',
      route: aRoute('owner'),
      ...over,
    });
  const down = (subject = unique('channel')) => ({ kind: 'channel-down', subject }) as const;

  const onlyPending = async (subject: string) => {
    const [notice, ...more] = await pendingOf(subject);
    expect(more).toEqual([]);
    if (!notice) throw new Error('nothing is pending');
    return notice;
  };

  it('keeps one alert for each kind and subject, and counts events', async () => {
    const subject = unique('account');
    const missed = { kind: 'events-missed', subject } as const;
    expect(await raise({ ...missed, values: { reason: 'first' } })).toBe(true);
    expect(await raise({ ...missed, values: { reason: 'second' } })).toBe(false);
    expect(await openOf(subject)).toMatchObject([{ count: 2, values: { reason: 'second' } }]);
    expect(await raise(down(subject))).toBe(true);
    expect(await openOf(subject)).toHaveLength(2);
  });

  it("stores kinds that 0.2.0 doesn't know under a kind that it resolves by itself", async () => {
    for (const kind of ['model-window', 'model-cache', 'part-failing'] as const) {
      const alert = { kind, subject: unique('house/small') };
      expect([await raise(alert), await raise(alert)]).toEqual([true, false]);
      expect(await open().read(readStoredKinds, alert)).toEqual([{ kind: 'context-full' }]);
      expect(await openOf(alert.subject)).toMatchObject([{ ...alert, count: 2 }]);
      expect(await pendingOf(alert.subject)).toMatchObject([alert]);
      expect(await open().read(readOpenAlerts, {})).toContainEqual(alert);
      await open().write(resolveAlert, alert);
      expect(await open().read(isAlertOpen, alert)).toBe(false);
    }
  });

  it('skips kinds that only a later version knows', async () => {
    const subject = unique('later');
    await raise({ kind: 'events-missed', subject });
    const [notice] = await openOf(subject);
    await sql(`update "ownerNotices" set kind = 'moon-phase' where id = '${notice?.id}'`);
    expect(await openOf(subject)).toEqual([]);
    expect(await pendingOf(subject)).toEqual([]);
    expect((await open().read(readOpenAlerts, {})).filter((one) => one.subject === subject)).toEqual([]);
    expect(await open().write(dismissNotice, { id: notice?.id ?? '' })).toBe('done');
  });

  it("doesn't count a state that is reported again", async () => {
    const trouble = down();
    await raise(trouble);
    await raise(trouble);
    expect(await openOf(trouble.subject)).toMatchObject([{ count: 1 }]);
  });

  it('opens one alert when many are raised at the same time', async () => {
    const subject = unique('account');
    const opened = await Promise.all(
      Array.from({ length: 20 }, () => raise({ kind: 'events-missed', subject })),
    );
    expect(opened.filter(Boolean)).toHaveLength(1);
    expect(await openOf(subject)).toMatchObject([{ count: 20 }]);
  });

  it('sends an alert once, in the transaction that marks it as told', async () => {
    const trouble = down();
    await raise(trouble);
    const { id } = await onlyPending(trouble.subject);
    expect(await tell(id)).toBe('test/bot/owner');
    expect(await tell(id)).toBeUndefined();
    expect(await pendingOf(trouble.subject)).toEqual([]);
    expect(await open().read(readPartStates, { keys: [`owner:${id}:raised`] })).toHaveLength(1);
  });

  it('sends the end of an alert once if its beginning was sent', async () => {
    const trouble = down();
    await raise(trouble);
    const { id } = await onlyPending(trouble.subject);
    await tell(id);
    await open().write(resolveAlert, trouble);
    expect(await openOf(trouble.subject)).toEqual([]);
    expect((await onlyPending(trouble.subject)).endedAt).toBeGreaterThan(0);
    const end = { step: 'ended', text: 'it is back', route: aRoute('elsewhere') } as const;
    expect(await tell(id, end)).toBe('test/bot/owner');
    expect(await tell(id, end)).toBeUndefined();
    expect(await pendingOf(trouble.subject)).toEqual([]);
  });

  it('continues the same alert if the problem is back before its end was sent', async () => {
    const trouble = down();
    await raise(trouble);
    const { id } = await onlyPending(trouble.subject);
    await tell(id);
    await open().write(resolveAlert, trouble);
    expect(await raise(trouble)).toBe(false);
    expect(await openOf(trouble.subject)).toMatchObject([{ id, count: 2 }]);
    expect(await pendingOf(trouble.subject)).toEqual([]);
    expect(await tell(id, { step: 'ended' })).toBeUndefined();
  });

  it('sends no end for an alert that nobody was told about', async () => {
    const trouble = down();
    await raise(trouble);
    await open().write(resolveAlert, trouble);
    expect(await pendingOf(trouble.subject)).toEqual([]);
  });

  it('records an alert even if there is nobody to tell', async () => {
    const trouble = down();
    await raise(trouble);
    const { id } = await onlyPending(trouble.subject);
    expect(await open().write(queueAlertMessage, { id, step: 'raised', text: 'it is down' })).toBeUndefined();
    expect(await pendingOf(trouble.subject)).toEqual([]);
    expect(await openOf(trouble.subject)).toHaveLength(1);
  });

  it("closes a dismissed alert and doesn't raise its state again until the state has ended", async () => {
    const trouble = down();
    await raise(trouble);
    const { id } = await onlyPending(trouble.subject);
    await tell(id);
    expect(await open().write(dismissNotice, { id })).toBe('done');
    expect(await raise(trouble)).toBe(false);
    expect(await openOf(trouble.subject)).toEqual([]);
    await open().write(resolveAlert, trouble);
    expect(await pendingOf(trouble.subject)).toEqual([]);
    expect(await raise(trouble)).toBe(true);
    expect(await open().write(dismissNotice, { id: 'nobody' })).toBe('not-found');
  });

  it('opens a new alert for an event after the earlier one was dismissed', async () => {
    const missed = { kind: 'events-missed', subject: unique('account') } as const;
    await raise(missed);
    await open().write(dismissNotice, { id: (await onlyPending(missed.subject)).id });
    expect(await raise(missed)).toBe(true);
    expect(await openOf(missed.subject)).toMatchObject([{ count: 1 }]);
  });

  it('opens a new alert for an event that happens a day after the last one was sent', async () => {
    const missed = { kind: 'events-missed', subject: unique('account') } as const;
    await raise(missed);
    const { id } = await onlyPending(missed.subject);
    await tell(id);
    expect(await raise(missed)).toBe(false);
    expect(await pendingOf(missed.subject)).toEqual([]);
    await sql(`update "ownerNotices" set "toldAt" = "toldAt" - 86400000 where id = '${id}'`);
    expect(await raise(missed)).toBe(true);
    expect((await onlyPending(missed.subject)).id).not.toBe(id);
    expect(await openOf(missed.subject)).toMatchObject([{ count: 3 }]);
  });

  it('counts unknown deliveries of a conversation until the operator has handled all of them', async () => {
    const { conversationKey: subject, begin, answer } = aConversation(open());
    const keys: string[] = [];
    for (const text of ['one', 'two']) {
      await answer(await begin(text), `answer to ${text}`);
      keys.push(await endUnknown(subject));
    }
    expect(await openOf(subject)).toMatchObject([{ kind: 'delivery-unknown', count: 2 }]);
    await open().write(dropPart, { key: keys[0] ?? '' });
    expect(await openOf(subject)).toHaveLength(1);
    await open().write(dropPart, { key: keys[1] ?? '' });
    expect(await openOf(subject)).toEqual([]);
  });

  it('raises no alert about an alert whose own delivery is unknown', async () => {
    const trouble = down();
    const conversation = unique('c');
    await raise(trouble);
    await tell((await onlyPending(trouble.subject)).id, { route: aRoute(conversation) });
    await endUnknown(`test/bot/${conversation}`);
    expect(await openOf(`test/bot/${conversation}`)).toEqual([]);
  });

  it("keeps the alert open while a conversation can't be reached", async () => {
    const { conversationKey: subject, worker, saying } = aConversation(open());
    const message = saying();
    const membership = (isMember: boolean) => ({
      ...message,
      eventKey: unique('membership'),
      kind: 'membership',
      decision: { kind: 'membership', isMember } as const,
    });
    await worker.accept(message, membership(false));
    expect(await openOf(subject)).toMatchObject([{ kind: 'conversation-unreachable', count: 1 }]);
    await worker.accept(membership(true));
    expect(await openOf(subject)).toEqual([]);
  });

  it('says why a run failed if its group only sees a reaction, and how often that happened', async () => {
    const { conversationKey: subject, begin, answer } = aConversation(open(), { chatKind: 'group' });
    const failed = (run: ClaimedRun, content: OutboundContent) =>
      [{ route: routeFor(run), content, purpose: 'notice' }] as const;
    const sign = { kind: 'reaction', messageId: messageId('m'), emoji: '⚠' } as const;
    const told = await begin('one');
    const line = { kind: 'text', text: { text: 'it failed', spans: [] } } as const;
    await endWithout(open(), told, 'timeout', { parts: failed(told, line) });
    expect(await openOf(subject)).toEqual([]);
    const cut = await begin('two');
    await endWithout(open(), cut, 'model_error', { parts: failed(cut, sign) });
    expect(await openOf(subject)).toMatchObject([
      { kind: 'run-failed', count: 1, values: { reason: 'model error', run: cut.runId } },
    ]);
    const empty = await begin('three');
    await answer(empty, '', {
      parts: failed(empty, sign),
      outcome: 'failed',
      outcomeReason: 'empty answer',
    });
    expect(await openOf(subject)).toMatchObject([{ count: 2, values: { reason: 'empty answer' } }]);
  });

  it('reports a moved conversation once', async () => {
    const { conversation, conversationKey: subject, worker, saying } = aConversation(open());
    const to = unique('c');
    for (let times = 0; times < 2; times++) {
      const decision = { kind: 'migrate', from: conversation, to, toKey: `test/bot/${to}` } as const;
      await worker.accept({
        ...saying(''),
        eventKey: unique('move'),
        kind: 'migrated',
        decision,
      });
    }
    expect(await openOf(subject)).toMatchObject([{ kind: 'conversation-moved', count: 1, values: { to } }]);
  });

  /** Sends the conversation's first part, but its result is lost. */
  const endUnknown = async (conversationKey: string): Promise<string> => {
    const { part } = await aCourier(open(), conversationKey).deliver({ kind: 'unknown', reason: 'cut' });
    return part.key;
  };
});

describeEachDatabase('the route to the owner', (open, beside) => {
  const owner = unique('owner');
  const routeOf = (over: Partial<OwnerSearch> = {}) =>
    open().read(readOwnerRoute, { owners: [`test:${owner}`], ...over });
  const says = async (conversation: string, sender: string, over: object = {}) => {
    await aWorker(open()).accept(aMessage({ conversation, text: 'hi', sender, ...over }));
    // Only the database's clock orders two messages.
    await new Promise((resolve) => setTimeout(resolve, 5));
  };

  it('sends alerts to the direct conversation in which an owner wrote last', async () => {
    expect(await routeOf()).toBeUndefined();
    const [first, second, foreign, group] = ['c', 'c', 'c', 'g'].map(unique) as [
      string,
      string,
      string,
      string,
    ];
    await says(first, owner);
    await says(second, owner);
    await says(foreign, 'somebody');
    await says(group, owner, { lane: aLane(group, { chatKind: 'group' }) });
    expect(await routeOf()).toEqual(aRoute(second));
    await says(first, owner);
    expect(await routeOf()).toEqual(aRoute(first));
    expect(await routeOf({ notIn: `test/bot/${first}` })).toEqual(aRoute(second));
  });

  it('sends alerts to a conversation to which an owner returns after hours', async () => {
    const [first, second] = [unique('c'), unique('c')];
    await says(first, owner);
    await says(second, owner);
    for (const [conversation, hours] of [
      [first, 2],
      [second, 1],
    ] as const) {
      const { key } = aLane(conversation);
      await beside.sql(`update lanes set "ownerAt" = "ownerAt" - ${hours} * 3600000 where key = '${key}'`);
      await beside.sql(
        `update inbox set "createdAt" = "createdAt" - ${hours} * 3600000 where "laneKey" = '${key}'`,
      );
    }
    await says(first, owner);
    expect(await routeOf()).toEqual(aRoute(first));
  });

  it('sends no alert to a conversation in which the owner now counts as somebody else', async () => {
    const [own, shared] = [unique('c'), unique('c')];
    await says(own, owner);
    await says(shared, owner);
    await says(shared, owner, { item: { authority: 'guest' } });
    expect(await routeOf()).toEqual(aRoute(own));
    await says(shared, owner);
    expect(await routeOf()).toEqual(aRoute(shared));
  });

  it("finds the owner's conversation among any number of foreign ones, sub-agents and titles", async () => {
    const [own, foreign] = [unique('c'), unique('c')];
    await says(own, owner);
    await says(foreign, 'somebody', { item: { authority: 'member' } });
    const same = `class, "agentId", "chatKind", "sessionId", epoch, "leaseUntil", "nextSeq", mode, "debounceMs", "quietMs", cap, "drop"`;
    await beside.sql(`insert into lanes (key, "lastActivityAt", ${same})
      with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 300)
      select key || n, "lastActivityAt" + n, ${same} from lanes, numbers where key = '${aLane(foreign).key}'`);
    expect(await routeOf()).toEqual(aRoute(own));
  });

  it('sends alerts through no unusable account or channel, and to no former owner', async () => {
    const conversation = unique('c');
    await says(conversation, owner);
    expect(await routeOf({ accounts: ['test/bot'], channels: ['test'] })).toEqual(aRoute(conversation));
    expect(await routeOf({ accounts: ['test/work'] })).toBeUndefined();
    expect(await routeOf({ channels: ['carrier'] })).toBeUndefined();
    expect(await routeOf({ notBy: 'test/bot' })).toBeUndefined();
    expect(await routeOf({ owners: ['test:another'] })).toBeUndefined();
    expect(await routeOf({ owners: [`other:${owner}`] })).toBeUndefined();
  });
});
