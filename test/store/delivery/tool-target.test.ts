import { expect, it } from 'vitest';
import { messageId } from '../../../src/contracts/ids.ts';
import type { OutboundContent } from '../../../src/contracts/outbound.ts';
import type { Store } from '../../../src/store/base/command.ts';
import { type PostInput, storeToolParts } from '../../../src/store/delivery/post-part.ts';
import { lastOwn } from '../../../src/store/delivery/tool-target.ts';
import { aConversation } from '../a-conversation.ts';
import { routeFor, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

const text: OutboundContent = { kind: 'text', text: { text: 'as I said', spans: [] } };

/** A conversation in which the agent has answered once; its next run calls tools. */
async function aSpeaker(store: Store) {
  const { laneKey, conversationKey, begin, answer, deliver, claimPart } = aConversation(store);
  const anId = (name: string) => messageId(unique(name));
  const [first, own, second] = [anId('first'), anId('own'), anId('second')];
  await answer(await begin('first', { messageId: first }), 'the answer');
  await deliver({ kind: 'sent', receipts: [own] });
  const run = await begin('second', { messageId: second });
  const { epoch, runId } = run;
  const route = routeFor(run);
  const post = (more: Partial<PostInput>) => {
    const key = `${runId}:tool:${unique('call')}`;
    return store.write(storeToolParts, { laneKey, epoch, runId, key, route, contents: [text], ...more });
  };
  return { laneKey, conversationKey, ids: { first, own, second, last: lastOwn }, post, deliver, claimPart };
}

describeEachDatabase('a message that a tool refers to', (open) => {
  it.each(['first', 'own', 'second', 'last'] as const)('is quoted in its own: %s', async (named) => {
    const { ids, post, claimPart } = await aSpeaker(open());
    await post({ quotes: ids[named], contents: [text, text] });
    const { part } = await claimPart();
    expect(part).toMatchObject({
      content: text,
      route: { replyTo: ids[named === 'last' ? 'own' : named] },
    });
  });

  it('is quoted in no other conversation', async () => {
    const { post } = await aSpeaker(open());
    const { ids } = await aSpeaker(open());
    for (const quotes of [ids.first, ids.own, messageId('unknown')])
      await expect(post({ quotes })).rejects.toThrow(/^There is no message/);
  });
});
