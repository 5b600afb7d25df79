import { expect, it, onTestFinished } from 'vitest';
import { type MessageId, threadId } from '../../../src/contracts/ids.ts';
import { conversationKeyOf } from '../../../src/store/base/keys.ts';
import type { Proposal } from '../../../src/store/intake/proposal.ts';
import { textsFor } from '../../../src/texts/chat-texts.ts';
import { aConversation } from '../a-conversation.ts';
import { aCommand, aLane, aMessage, aRoute, aWorker, routeFor, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readLane } from '../lane-at-rest.ts';
import { readOutcomes } from '../lanes/outcomes.ts';

function aBlock(conversation: string): Proposal {
  const conversationKey = conversationKeyOf(aRoute(conversation));
  return {
    eventKey: unique('membership'),
    kind: 'membership',
    conversationKey,
    senderId: 'ann',
    decision: { kind: 'membership', isMember: false },
  };
}

describeEachDatabase("the outcome of a message whose reply can't be delivered", (open) => {
  const outcomes = (conversation: string) =>
    open().read(readOutcomes, { conversationKey: conversationKeyOf(aRoute(conversation)) });

  it('fails a message if the person blocks the bot before the answer is ready', async () => {
    const { conversation, worker, begin, answer } = aConversation(open());
    const run = await begin();
    await worker.accept(aBlock(conversation));
    await answer(run, 'hello');
    expect(await outcomes(conversation)).toEqual(['failed: delivery failed']);
  });

  it('fails a message if the person blocks the bot while the answer waits to be sent', async () => {
    const { conversation, worker, begin, answer } = aConversation(open());
    await answer(await begin(), 'hello');
    expect(await outcomes(conversation)).toEqual(['answered']);
    await worker.accept(aBlock(conversation));
    expect(await outcomes(conversation)).toEqual(['failed: delivery failed']);
  });

  it("counts a message as answered even if a preview couldn't be deleted before the answer", async () => {
    const { conversation, begin, answer, claimPart, record } = aConversation(open());
    const run = await begin();
    const removal = { kind: 'delete', messageId: 'm1' as MessageId } as const;
    const text = { kind: 'text', text: { text: 'hello', spans: [] } } as const;
    await answer(run, 'hello', {
      parts: [
        { route: routeFor(run), content: removal, purpose: 'notice' },
        { route: routeFor(run), content: text, purpose: 'reply' },
      ],
    });
    const claimed = await claimPart();
    const result = { kind: 'failed', failure: { kind: 'rejected' }, reason: 'too old to delete' } as const;
    const next = await record(claimed, result, true);
    expect(next.kind === 'part' && next.part.content).toEqual(text);
    expect(await outcomes(conversation)).toEqual(['answered']);
  });

  it('sends a line if the platform refuses the reaction that says a run failed', async () => {
    const { begin, answer, claimPart, record } = aConversation(open());
    const run = await begin();
    const content = { kind: 'reaction', messageId: 'm1' as MessageId, emoji: '⚠' } as const;
    await answer(run, '', { parts: [{ route: routeFor(run), content, purpose: 'reply' }] });
    const claimed = await claimPart();
    const result = { kind: 'failed', failure: { kind: 'rejected' }, reason: 'REACTION_INVALID' } as const;
    const { internalFailure: text } = textsFor('en');
    expect(await record(claimed, result, true)).toMatchObject({
      part: { key: claimed.part.key, route: { replyTo: 'm1' }, content: { kind: 'text', text: { text } } },
    });
  });

  it('sends a new message if an edit was cut off once and then refused', async () => {
    const { begin, answer, claimPart, record } = aConversation(open());
    const run = await begin();
    const text = { text: 'hello', spans: [] };
    const content = { kind: 'edit', messageId: 'm1' as MessageId, text } as const;
    await answer(run, 'hello', { parts: [{ route: routeFor(run), content, purpose: 'reply' }] });
    const cutOff = { ...(await claimPart()), mayHaveArrivedSince: 1 };
    const result = { kind: 'failed', failure: { kind: 'rejected' }, reason: 'no such message' } as const;
    expect(await record(cutOff, result, true)).toMatchObject({
      ...{ kind: 'part', step: 'send', mayHaveArrivedSince: undefined },
      part: { key: cutOff.part.key, content: { kind: 'text', text } },
    });
  });

  it('keeps the route of later answers if the thread was gone for an earlier one', async () => {
    const { conversation, begin, answer, deliver, claimPart } = aConversation(open());
    const route = aRoute(conversation, { thread: threadId('7') });
    const inThread = { item: { route } };
    await answer(await begin('one', inThread), 'first');
    await deliver({ kind: 'failed', failure: { kind: 'thread-gone' }, reason: 'no thread' });
    const { part: again } = await deliver({ kind: 'failed', failure: { kind: 'rejected' }, reason: 'no' });
    expect(again.route.thread).toBeUndefined();
    await answer(await begin('two', inThread), 'second');
    expect((await claimPart()).part.route).toEqual(route);
  });

  it("fails a message whose own answer failed, whatever happens to the run's next answer", async () => {
    const { conversation, say, begin, answer, deliver } = aConversation(open());
    const run = await begin('one');
    await say('two');
    await answer(run, 'first');
    await deliver({ kind: 'failed', failure: { kind: 'rejected' }, reason: 'no' });
    await answer(run, 'second');
    expect(await outcomes(conversation)).toEqual(['failed: delivery failed', 'answered']);
  });
});

/** Waits so that one step reaches the database at a different point of the other each time. */
const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describeEachDatabase('a conversation found unreachable while its lane is claimed', (open, beside) => {
  it('ends each waiting message or runs it, and never both, when the conversation is unreachable', async () => {
    const other = await beside.open();
    onTestFinished(() => other.close());
    const intake = aWorker(open());
    const worker = aWorker(other, 'boot-b');
    const seen: string[] = [];
    for (let round = 0; round < 60; round++) {
      const conversation = unique('c');
      const conversationKey = conversationKeyOf(aRoute(conversation));
      await intake.accept(aMessage({ conversation, text: 'hi' }));
      const [claim] = await Promise.all([
        later(round % 6).then(() => worker.claim(aLane(conversation).key)),
        intake.accept(aBlock(conversation)),
      ]);
      if (claim.kind === 'run') await worker.answer(claim.run, 'hello');
      const { inbox } = await readLane(open(), aLane(conversation).key);
      const told = inbox.filter((row) => row.transcriptId !== null).length;
      const [outcome] = await open().read(readOutcomes, { conversationKey });
      seen.push(`${inbox.map((row) => row.state)} ${told === 1 ? 'told' : 'untold'} ${outcome}`);
    }
    const right = ['ended told failed: delivery failed', 'ended untold failed: unreachable'];
    expect(seen.filter((one) => !right.includes(one))).toEqual([]);
  });

  it('marks a conversation as reachable again when somebody writes a command there', async () => {
    const { conversation, worker, saying, claimPart } = aConversation(open());
    await worker.accept(saying(), aBlock(conversation));
    await worker.accept(aCommand(conversation, { kind: 'status' }));
    expect((await claimPart()).part.content).toMatchObject({
      text: { text: expect.stringContaining('Queue: steer') },
    });
  });
});
