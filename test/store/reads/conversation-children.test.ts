import { expect, it } from 'vitest';
import { readConversationChildren } from '../../../src/store/reads/read-conversation-children.ts';
import { readStanding } from '../../../src/store/reads/read-standing.ts';
import { aLane, aMessage, aWorker, unique } from '../builders.ts';
import { aChildRow } from '../child-rows.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('the sub-agents of a conversation', (open, { sql }) => {
  const aParent = async () => {
    const conversation = unique('c');
    const worker = aWorker(open());
    await worker.accept(aMessage({ conversation, text: 'go' }));
    return worker.claimRun(aLane(conversation).key);
  };
  const stand = async (laneKey: string) => (await open().read(readStanding, { laneKey })).children ?? [];

  it('are listed at every depth, oldest first, with what they have used', async () => {
    const parent = await aParent();
    expect(await stand(parent.laneKey)).toEqual([]);
    const child = aChildRow(parent, { label: 'research', createdAt: 1000 });
    const below = aChildRow(child, { state: 'queued', createdAt: 2000 });
    const ended = aChildRow(parent, { state: 'done', status: 'failed', createdAt: 3000, usage: [5, 6, 7] });
    for (const { insert } of [ended, child, below]) await sql(insert);
    await sql(`update "sessions" set "promptTokens" = 10, "completionTokens" = 4 where "id" = '${child.id}'`);
    const shown = await stand(parent.laneKey);
    expect(shown).toEqual([
      expect.objectContaining({ id: child.id, depth: 1, name: 'research', state: 'running', tokens: 14 }),
      expect.objectContaining({ id: below.id, parentId: child.id, depth: 2, name: 'look something up' }),
      expect.objectContaining({ id: ended.id, state: 'done', status: 'failed', tokens: 11, cost: 7 }),
    ]);
    expect(shown[0]).not.toHaveProperty('parentId');
    expect(shown[1]).not.toHaveProperty('startedAt');
  });

  it('are those of this conversation only, and at most as many as asked for', async () => {
    const [parent, other] = [await aParent(), await aParent()];
    const children = [1000, 2000, 3000].map((createdAt) => aChildRow(parent, { createdAt }));
    for (const { insert } of [...children, aChildRow(other)]) await sql(insert);
    const newest = await open().read(readConversationChildren, { laneKey: parent.laneKey, limit: 2 });
    expect(newest.map(({ id }) => id)).toEqual(children.slice(1).map(({ id }) => id));
  });
});
