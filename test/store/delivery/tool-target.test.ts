import { expect, it } from 'vitest';
import { plainText } from '../../../src/contracts/formatted-text.ts';
import { type MessageId, messageId } from '../../../src/contracts/ids.ts';
import type { OutboundContent } from '../../../src/contracts/outbound.ts';
import type { Store } from '../../../src/store/base/command.ts';
import {
  lastOwn,
  readPartStates,
  storeToolParts,
  type ToolSendInput,
} from '../../../src/store/delivery/tool-send.ts';
import { readTimeline } from '../../../src/store/reads/read-timeline.ts';
import { aConversation, aCourier } from '../a-conversation.ts';
import { routeFor, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

const text: OutboundContent = { kind: 'text', text: { text: 'as I said', spans: [] } };

/** Returns a conversation in which the agent has answered once; its next run calls tools. */
async function aSpeaker(store: Store) {
  const around = aConversation(store);
  const { laneKey, begin, answer, deliver } = around;
  const anId = (name: string) => messageId(unique(name));
  const [first, own, notice, second] = [anId('first'), anId('own'), anId('notice'), anId('second')];
  const before = await begin('first', { messageId: first });
  const said = { kind: 'text', text: plainText('the answer') } as const;
  const parts = (['reply', 'notice'] as const).map((purpose) => ({
    route: routeFor(before),
    content: said,
    purpose,
  }));
  await answer(before, 'the answer', { parts });
  for (const id of [own, notice]) await deliver({ kind: 'sent', receipts: [id] });
  const run = await begin('second', { messageId: second });
  const { epoch, runId } = run;
  const route = routeFor(run);
  const post = (more: Partial<ToolSendInput>) => {
    const key = `${runId}:tool:${unique('call')}`;
    return store.write(storeToolParts, { laneKey, epoch, runId, key, route, contents: [text], ...more });
  };
  return { ...around, ids: { first, own, notice, second, last: lastOwn }, post };
}

describeEachDatabase('a message that a tool refers to', (open) => {
  it.each(['first', 'own', 'second', 'last'] as const)(
    'quotes a message in its own conversation: %s',
    async (named) => {
      const { ids, post, claimPart } = await aSpeaker(open());
      await post({ quotes: ids[named], contents: [text, text] });
      const { part } = await claimPart();
      expect(part).toMatchObject({
        content: text,
        route: { replyTo: ids[named === 'last' ? 'own' : named] },
      });
    },
  );

  it('refuses to quote a message of another conversation', async () => {
    const { post } = await aSpeaker(open());
    const { ids } = await aSpeaker(open());
    for (const quotes of [ids.first, ids.own, messageId('unknown')])
      await expect(post({ quotes })).rejects.toThrow(/^There is no message/);
  });

  it('refuses an action on a message of another conversation', async () => {
    const { ids, post, claimPart } = await aSpeaker(open());
    const { ids: theirs } = await aSpeaker(open());
    const pin = (messageId: MessageId) =>
      post({ contents: [{ kind: 'action', tool: 'pin', input: {}, summary: 'pin', messageId }] });
    for (const id of [theirs.first, theirs.own, ids.notice, messageId('unknown')])
      await expect(pin(id)).rejects.toThrow(/^There is no message/);
    await pin(ids.last);
    expect((await claimPart()).part.content).toMatchObject({ kind: 'action', messageId: ids.own });
  });

  it('refuses a reaction unless a person wrote the message in this conversation', async () => {
    const { ids, post, claimPart } = await aSpeaker(open());
    const { ids: theirs } = await aSpeaker(open());
    const react = (id: MessageId) => post({ contents: [{ kind: 'reaction', messageId: id, emoji: '👍' }] });
    for (const id of [theirs.first, ids.own, messageId('unknown')])
      await expect(react(id)).rejects.toThrow(/^There is no message/);
    await react(ids.first);
    expect((await claimPart()).part.content).toEqual({ kind: 'reaction', messageId: ids.first, emoji: '👍' });
  });

  it.each(['edit', 'delete'] as const)(
    'refuses a change (%s) unless the agent sent the message in this conversation',
    async (kind) => {
      const { ids, post, deliver } = await aSpeaker(open());
      const { ids: theirs } = await aSpeaker(open());
      const change = (id: MessageId) =>
        post({ contents: [{ kind, messageId: id, text: plainText('better') }] });
      for (const id of [theirs.own, theirs.first, ids.first, ids.notice, messageId('unknown')])
        await expect(change(id)).rejects.toThrow("isn't one that you have sent here");
      await change(lastOwn);
      expect((await deliver()).part.content).toMatchObject({ kind, messageId: ids.own });
      const again = change(lastOwn);
      if (kind === 'edit') await again;
      else await expect(again).rejects.toThrow('No message of yours');
    },
  );

  it("refuses a guest's change unless this very run sent the message", async () => {
    const { ids, post, deliver } = await aSpeaker(open());
    const remove = (id: MessageId) =>
      post({ contents: [{ kind: 'delete', messageId: id }], changesOwnOnly: true });
    await expect(remove(ids.own)).rejects.toThrow('A guest');
    await post({});
    const ofThisRun = messageId(unique('of-this-run'));
    await deliver({ kind: 'sent', receipts: [ofThisRun] });
    await remove(lastOwn);
    expect((await deliver()).part.content).toEqual({ kind: 'delete', messageId: ofThisRun });
  });

  it('accepts a reaction to an overheard message', async () => {
    const { post, say, claimPart } = await aSpeaker(open());
    const overheard = messageId(unique('overheard'));
    await say('by the way', { messageId: overheard, item: { passesGate: false } });
    await post({ contents: [{ kind: 'reaction', messageId: overheard, emoji: '👍' }] });
    expect((await claimPart()).part.content).toMatchObject({ messageId: overheard });
  });

  it("sends nothing instead when the network refuses a tool's change", async () => {
    const { laneKey, ids, post, deliver, claimNext } = await aSpeaker(open());
    const content = { kind: 'reaction', messageId: ids.first, emoji: '👍' } as const;
    const { keys } = await post({ contents: [content] });
    await deliver({ kind: 'failed', failure: { kind: 'rejected' }, reason: 'no such reaction here' });
    expect(await claimNext()).toEqual({ kind: 'empty' });
    expect(await open().read(readPartStates, { keys })).toMatchObject([
      { state: 'failed', problem: 'no such reaction here' },
    ]);
    const said = (await open().read(readTimeline, { laneKey, limit: 10 })).map((item) => item.text);
    expect(said).toEqual(['first', 'the answer', 'the answer', 'second']);
  });

  it("refuses a tool's change of a message after its group has moved to a new id", async () => {
    const { ids, post, saying, worker, conversation } = await aSpeaker(open());
    const content = { kind: 'reaction', messageId: ids.first, emoji: '👍' } as const;
    const { keys } = await post({ contents: [content] });
    await post({ contents: [text] });
    const moved = unique('super');
    const decision = { kind: 'migrate', from: conversation, to: moved, toKey: `test/bot/${moved}` } as const;
    await worker.accept({ ...saying(), eventKey: unique('migrate'), kind: 'migrated', decision });
    expect(await open().read(readPartStates, { keys })).toMatchObject([{ state: 'failed' }]);
    expect((await aCourier(open(), `test/bot/${moved}`).claimPart()).part.content).toEqual(text);
    await expect(post({ contents: [content] })).rejects.toThrow('new id');
  });
});
