import { expect, it } from 'vitest';
import { renderTrace } from '../../../../src/cli/render-trace.ts';
import type { MessageId } from '../../../../src/contracts/ids.ts';
import { waitExpired } from '../../../../src/contracts/message.ts';
import { readRoles } from '../../../../src/store/access/sender-roles.ts';
import { dismissNotice } from '../../../../src/store/alerts/alert.ts';
import { retryPart } from '../../../../src/store/delivery/operator-actions.ts';
import { storeWaitingNotices } from '../../../../src/store/items/waiting-notices.ts';
import {
  commitToolTurn,
  markToolStarted,
  storeToolResults,
} from '../../../../src/store/lanes/commit-turn.ts';
import { parkForBudget } from '../../../../src/store/lanes/park-run.ts';
import { takeSteers } from '../../../../src/store/lanes/steer.ts';
import { readWhy, type Why } from '../../../../src/store/reads/why/read-why.ts';
import type { MessageTrace } from '../../../../src/store/reads/why/trace.ts';
import { aConversation } from '../../a-conversation.ts';
import { account, aMessage, aWorker, framing, routeFor, unique } from '../../builders.ts';
import { counted } from '../../call-builders.ts';
import { describeEachDatabase } from '../../each-database.ts';

describeEachDatabase('the trace of a message', (open, { sql }) => {
  const why = (id: string, withExcerpts = false): Promise<Why> => open().read(readWhy, { id, withExcerpts });
  const accountOf = async (id: string, withExcerpts = false): Promise<MessageTrace> => {
    const found = await why(id, withExcerpts);
    if (found.kind !== 'account') throw new Error(`${id} is ${found.kind}`);
    return found.account;
  };

  /** Sends a message, answers it, and delivers the answer as `sentId`. */
  const anAnswered = async () => {
    const { conversation, conversationKey, begin, answer, deliver } = aConversation(open());
    const [messageId, sentId] = [unique('m'), unique('sent')];
    const run = await begin(`a  question\nin ${conversation}`, { messageId });
    await answer(run, `an answer in ${conversation}`, {
      modelCalls: [counted(run, { cost: 1234, cacheReadTokens: 7 })],
    });
    await deliver({ kind: 'sent', receipts: [sentId as MessageId] });
    return { conversation, conversationKey, messageId, sentId, run };
  };

  it('shows whether each tool call is done, failed, never ran or is unknown', async () => {
    const { begin } = aConversation(open());
    const { laneKey, epoch, runId, sessionId } = await begin('go');
    const held = { laneKey, epoch, runId };
    const ends = [
      { callId: 'good', isError: false, content: 'seen' },
      { callId: 'bad', isError: true, content: 'no such file' },
      { callId: 'cut', isError: true, content: 'cancelled by user; it had started, outcome unknown' },
      { callId: 'late', isError: true, content: 'skipped: a new message arrived' },
      { callId: 'over', isError: true, content: waitExpired },
    ];
    const calls = ends.map(({ callId }) => ({ callId, name: 'act', input: '{}' }));
    const message = { id: unique('turn'), sessionId, model: 'test', parts: [] };
    await open().write(commitToolTurn, { ...held, message, calls });
    const turn = { ...held, messageId: message.id };
    for (const callId of ['good', 'bad', 'cut', 'over'])
      await open().write(markToolStarted, { ...turn, callId });
    const results = ends.map(({ callId, isError, content }) => {
      const data = { tool_call_id: callId, name: 'act', content, is_error: isError };
      return { callId, isError, parts: [{ type: 'tool_result', data }] as const };
    });
    await open().write(storeToolResults, { ...turn, results });
    const story = renderTrace(await accountOf(runId));
    const endOf = (callId: string) => new RegExp(`tool act \\(${callId}\\): (.*)`).exec(story)?.[1];
    expect(endOf('good')).toMatch(/^done in \d+ ms$/);
    expect(endOf('bad')).toMatch(/^failed in \d+ ms$/);
    expect(endOf('cut')).toBe('interrupted, outcome unknown');
    expect(endOf('late')).toBe("didn't run");
    expect(endOf('over')).toMatch(/^expired after \d+ ms: no answer came in time$/);
  });

  it('leads from an incoming message to its run, model call, cost and answer', async () => {
    const { conversationKey, messageId, sentId, run } = await anAnswered();
    const found = await accountOf(messageId);
    expect(found).toEqual({
      asked: { kind: 'message', conversationKey, messageId },
      children: [],
      tasks: [],
      approvals: [],
      callApprovals: [],
      events: [
        expect.objectContaining({
          account,
          eventKey: `message:${messageId}`,
          outcome: 'accepted',
          messageId,
        }),
      ],
      items: [
        expect.objectContaining({
          messageId,
          state: 'ended',
          outcome: 'answered',
          sender: 'test:ann',
          authority: 'owner',
          runId: run.runId,
          joined: 'began',
          changes: [],
        }),
      ],
      runs: [
        expect.objectContaining({
          id: run.runId,
          state: 'finished',
          endReason: 'natural',
          attempts: 1,
          modelCalls: [
            {
              ...{
                inputTokens: 120,
                outputTokens: 30,
                cacheReadTokens: 7,
                cacheWriteTokens: 0,
                isWithoutTools: false,
              },
              ...{
                purpose: 'turn',
                model: 'test-model',
                state: 'settled',
                cost: 1234,
                latencyMs: 56,
                at: expect.any(Number),
              },
            },
          ],
          transcript: [
            expect.objectContaining({ role: 'user' }),
            expect.objectContaining({ role: 'assistant' }),
          ],
        }),
      ],
      parts: [
        expect.objectContaining({ state: 'sent', messageIds: [sentId], runId: run.runId, purpose: 'reply' }),
      ],
    });
    expect(found.parts[0]?.answer).toBe(found.runs[0]?.transcript[1]?.id);
  });

  it('leads back from the sent message, and from every id in between', async () => {
    const { conversation, messageId, sentId } = await anAnswered();
    const { items, runs, parts, events } = await accountOf(messageId);
    const ids = [
      sentId,
      `test:${conversation}/${sentId}`,
      `test:${conversation}/${messageId}`,
      `test/bot/${conversation}/${messageId}`,
      `message:${messageId}`,
      `${account}:message:${messageId}`,
      items[0]?.id,
      runs[0]?.id,
      parts[0]?.key,
      ...(runs[0]?.transcript ?? []).map(({ id }) => id),
    ];
    for (const id of ids) {
      const { asked: _, ...facts } = await accountOf(id ?? 'missing');
      expect(facts, id).toEqual({
        events,
        items,
        runs,
        children: [],
        tasks: [],
        parts,
        approvals: [],
        callApprovals: [],
      });
    }
  });

  it('shows the beginning of texts on request only', async () => {
    const { conversation, messageId } = await anAnswered();
    expect(JSON.stringify(await accountOf(messageId))).not.toMatch(/question|an answer/);
    const { items, parts } = await accountOf(messageId, true);
    expect(items[0]?.excerpt).toBe(`a question in ${conversation}`.slice(0, 60));
    expect(parts[0]?.excerpt).toBe(`an answer in ${conversation}`.slice(0, 60));
  });

  it('lists every conversation in which a message has the id', async () => {
    const worker = aWorker(open());
    const messageId = unique('same');
    const conversations = [unique('c'), unique('c')];
    for (const conversation of conversations)
      await worker.accept(aMessage({ conversation, text: 'hi', messageId, eventKey: unique('event') }));
    const found = await why(messageId);
    expect(found.kind === 'several' && found.candidates.map(({ name }) => name).sort()).toEqual(
      conversations.map((conversation) => `test/bot/${conversation}/${messageId}`).sort(),
    );
    for (const conversation of conversations) {
      const { items } = await accountOf(`test:${conversation}/${messageId}`);
      expect(items.map((item) => item.conversationKey)).toEqual([`test/bot/${conversation}`]);
    }
  });

  it('says which position a waiting message has, and who changed it', async () => {
    const { laneKey, say } = aConversation(open());
    const [first, second] = [unique('m'), unique('m')];
    for (const messageId of [first, second]) await say('hi', { messageId });
    const before = (await accountOf(second)).items[0];
    expect(before).toMatchObject({ state: 'waiting', ahead: 1, outcome: undefined, runId: undefined });
    await sql(`insert into "itemChanges" ("id", "laneKey", "inboxId", "kind", "by", "at")
      values ('${unique('change')}', 'lane', '${before?.id}', 'edit', 'test:bob', 5)`);
    expect((await accountOf(second)).items[0]?.changes).toEqual([{ kind: 'edit', by: 'test:bob', at: 5 }]);
    const untold = { inboxId: before?.id ?? '', laneKey, content: undefined };
    await open().write(storeWaitingNotices, { notices: [untold] });
    expect((await accountOf(second)).items[0]?.notifiedAt, 'nobody was told').toBeUndefined();
  });

  it('leads from a run paused for a budget to the notice that its person got, and back', async () => {
    const { begin, deliver } = aConversation(open());
    const [messageId, sentId] = [unique('m'), unique('sent')];
    const run = await begin('hi', { messageId });
    const { laneKey, epoch, runId } = run;
    const refusal = { scope: 'run', key: `run:${runId}`, limit: 1, needs: 5, isHeld: false } as const;
    const notice = { route: routeFor(run), text: 'I’ve paused.' };
    const pause = { reason: 'room', workedMs: 0, waitMs: 600_000, modelCalls: [], notice };
    await open().write(parkForBudget, { laneKey, epoch, runId, refusal, ...pause });
    await deliver({ kind: 'sent', receipts: [sentId as MessageId] });
    expect((await accountOf(messageId)).parts).toMatchObject([{ purpose: 'notice', messageIds: [sentId] }]);
    expect((await accountOf(sentId)).items).toMatchObject([{ messageId, state: 'taken' }]);
  });

  it('distinguishes a steer from the message that began the run', async () => {
    const { say, begin } = aConversation(open());
    const [began, steered] = [unique('m'), unique('m')];
    const run = await begin('one', { messageId: began });
    await untilLater(run.now);
    await say('two', { messageId: steered });
    await open().write(takeSteers, { ...run, framing, delivery: 'one-at-a-time' });
    const { items } = await accountOf(steered);
    expect(items.map(({ messageId, joined }) => ({ messageId, joined }))).toEqual([
      { messageId: began, joined: 'began' },
      { messageId: steered, joined: 'steered' },
    ]);
  });

  it('finds a refused message with its notice', async () => {
    const { lane, say } = aConversation(open(), { settings: { cap: 1, drop: 'new' } });
    const [kept, refused] = [unique('m'), unique('m')];
    await say('one', { messageId: kept, lane });
    await say('two', { messageId: refused, lane });
    const told = await accountOf(refused);
    expect(told).toMatchObject({
      events: [{ outcome: 'refused', reason: 'queue-full' }],
      items: [],
      parts: [{ purpose: 'notice', state: 'pending' }],
    });
    const key = told.parts[0]?.key ?? '';
    expect((await accountOf(key)).events).toEqual(told.events);
    expect((await accountOf(key, true)).parts[0]).not.toHaveProperty('excerpt');
  });

  it('shows an answer that may not have arrived, and why', async () => {
    const { begin, answer, deliver } = aConversation(open());
    const messageId = unique('m');
    await answer(await begin('hi', { messageId }), 'hello');
    await deliver({ kind: 'unknown', reason: 'cut off' });
    expect(await accountOf(messageId)).toMatchObject({
      items: [{ outcome: 'answered', outcomeReason: 'delivery unknown' }],
      parts: [{ state: 'unknown', problem: 'cut off', messageIds: [] }],
    });
  });

  it('finds nothing for an id that was never seen', async () => {
    expect(await why('nobody/knows:this')).toEqual({ kind: 'unknown' });
    expect(await why('')).toEqual({ kind: 'unknown' });
    expect(await why(`'; drop table inbox; --`)).toEqual({ kind: 'unknown' });
  });

  it('finds nothing for an id that no database can store, like every other step', async () => {
    expect(await why('\0')).toEqual({ kind: 'unknown' });
    expect(await open().write(retryPart, { key: 'run:\0' })).toBe('not-found');
    expect(await open().write(dismissNotice, { id: '\0' })).toBe('not-found');
    const peerIds = ['\0', 'half \ud800', '\udfff', '😀\\u0000'];
    expect(await open().read(readRoles, { account, peerIds })).toEqual(new Map());
  });
});

/** Waits until the database's clock has moved on, so that what comes now is later than the start. */
async function untilLater(than: number): Promise<void> {
  while (Date.now() <= than) await new Promise((resolve) => setTimeout(resolve, 1));
}
