import { expect, it } from 'vitest';
import { readChildren } from '../../../src/store/children/child.ts';
import { reserveCall } from '../../../src/store/money/model-call.ts';
import { readActivity, readConversationChildren } from '../../../src/store/reads/read-activity.ts';
import { aConversation } from '../a-conversation.ts';
import { aLane, aMessage, aWorker, unique } from '../builders.ts';
import { rate } from '../call-builders.ts';
import { aChildRow } from '../child-rows.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('the sub-agents of a conversation', (open, { sql }) => {
  const aParent = async () => {
    const { say, claimRun } = aConversation(open());
    await say('go');
    return claimRun();
  };
  /** Starts a run of the sub-agent that makes two model calls and hasn't ended; returns its id. */
  const callTwice = async (laneKey: string) => {
    const worker = aWorker(open());
    const lane = aLane('child', { key: laneKey, class: 'sub-1' });
    await worker.accept(aMessage({ conversation: unique('c'), text: 'go on', lane }));
    const { epoch, runId, sessionId } = await worker.claimRun(laneKey);
    const call = { id: `${epoch}.2`, runId, sessionId, purpose: 'turn', rate, reserved: 2 } as const;
    await open().write(reserveCall, { laneKey, epoch, runId, call, limits: [], ends: [] });
    return runId;
  };
  const stand = async (laneKey: string) => (await open().read(readActivity, { laneKey })).children ?? [];

  it('lists the sub-agents of a conversation at every depth, oldest first, with their usage', async () => {
    const parent = await aParent();
    expect(await stand(parent.laneKey)).toEqual([]);
    const child = aChildRow(parent, { label: 'research', createdAt: 1000 });
    const below = aChildRow(child, { state: 'queued', createdAt: 2000 });
    const ended = aChildRow(parent, { state: 'done', status: 'failed', createdAt: 3000, usage: [5, 6, 7] });
    for (const { insert } of [ended, child, below]) await sql(insert);
    const runId = await callTwice(child.laneKey);
    await sql(
      `update "modelCalls" set "inputTokens" = 10, "outputTokens" = 4, cost = 3 where "runId" = '${runId}'`,
    );
    const shown = await stand(parent.laneKey);
    expect(shown).toEqual([
      expect.objectContaining({ id: child.id, depth: 1, name: 'research', tokens: 28, cost: 6 }),
      expect.objectContaining({ id: below.id, parentId: child.id, depth: 2, name: 'look something up' }),
      expect.objectContaining({ id: ended.id, state: 'done', status: 'failed', tokens: 11, cost: 7 }),
    ]);
    const records = await open().read(readChildren, { sessionId: parent.sessionId, limit: 5 });
    const usage = { promptTokens: 20, completionTokens: 8, cost: 6 };
    expect(records.find(({ id }) => id === child.id)).toMatchObject({ state: 'running', usage });
    expect(shown[0]).not.toHaveProperty('parentId');
    expect(shown[1]).not.toHaveProperty('startedAt');
  });

  it('lists live sub-agents however many have ended since', async () => {
    const parent = await aParent();
    const old = aChildRow(parent, { createdAt: 1000 });
    const ended = [2000, 3000, 4000].map((createdAt) => aChildRow(parent, { state: 'done', createdAt }));
    for (const { insert } of [old, ...ended]) await sql(insert);
    const known = await open().read(readChildren, { sessionId: parent.sessionId, limit: 2 });
    expect(known.map(({ id }) => id)).toEqual([ended[2]?.id, old.id]);
    const shown = await open().read(readConversationChildren, { laneKeys: [parent.laneKey], limit: 2 });
    expect(shown.map(({ id }) => id)).toEqual([old.id, ended[1]?.id, ended[2]?.id]);
  });

  it('lists the sub-agents of this conversation only, with a limit on ended ones', async () => {
    const [parent, other] = [await aParent(), await aParent()];
    const children = [1000, 2000, 3000].map((createdAt) => aChildRow(parent, { createdAt, state: 'done' }));
    for (const { insert } of [...children, aChildRow(other)]) await sql(insert);
    const newest = await open().read(readConversationChildren, { laneKeys: [parent.laneKey], limit: 2 });
    expect(newest.map(({ id }) => id)).toEqual(children.slice(1).map(({ id }) => id));
  });
});
