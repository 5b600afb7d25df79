import { expect, it } from 'vitest';
import type { FinishReason } from '../../../src/contracts/message.ts';
import type { Store } from '../../../src/store/base/command.ts';
import { promoteItem } from '../../../src/store/items/change-item.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { commitToolTurn, endToolTurn, markToolStarted } from '../../../src/store/lanes/commit-turn.ts';
import { takeSteers } from '../../../src/store/lanes/steer.ts';
import { aConversation } from '../a-conversation.ts';
import {
  aLane,
  aMessage,
  aRoute,
  aWorker,
  defaults,
  endWithout,
  framing,
  newCommand,
  unique,
} from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readLane } from '../lane-at-rest.ts';
import { readOutcomes } from '../lanes/outcomes.ts';

/** Returns a run that ann has started and that has taken in a steer, from bob or from herself. */
async function steered(store: Store, sender = 'ann') {
  const { conversation, conversationKey, lane, worker, saying, claimRun, command } = aConversation(store, {
    settings: { mode: 'steer-backlog' },
    chatKind: 'group',
  });
  const say = (text: string, who: string) => saying(text, { sender: who });
  await worker.accept(say('first', 'ann'));
  const run = await claimRun();
  const steer = say('steer', sender);
  await worker.accept(steer);
  await worker.accept(say('behind it', 'ann'));
  const { steers } = await store.write(takeSteers, { ...run, framing, delivery: 'one-at-a-time' });
  expect(steers).toHaveLength(1);
  const end = (outcomeReason: string, finish: FinishReason = 'error') =>
    endWithout(store, run, outcomeReason, {
      message: aTurn(run, finish),
      outcome: outcomeReason === 'error' ? 'failed' : 'cancelled',
    });
  const outcomes = () => store.read(readOutcomes, { conversationKey });
  const told = async () => (await readLane(store, lane.key)).told.map(({ text }) => text);
  return { conversation, lane, worker, run, steer, say, end, outcomes, command, told };
}

function aTurn({ sessionId }: ClaimedRun, reason: FinishReason) {
  const finish = { type: 'finish', data: { reason, time: 1 } } as const;
  return { id: crypto.randomUUID(), sessionId, model: 'test', parts: [finish] };
}

/** Makes a turn with one tool call, which has started or not. */
async function callTool(store: Store, run: ClaimedRun, isBegun: boolean) {
  const message = aTurn(run, 'tool_use');
  const calls = [{ callId: 'call', name: 'wait', input: '{}' }];
  await store.write(commitToolTurn, { ...run, message, calls });
  const messageId = message.id;
  if (isBegun) await store.write(markToolStarted, { ...run, messageId, callId: 'call' });
  const cut = { ...message, parts: aTurn(run, 'canceled').parts };
  const results = [{ callId: 'call', isError: true, parts: [] }];
  await store.write(endToolTurn, { ...run, messageId, results, message: cut, framing, delivery: 'none' });
}

describeEachDatabase('a retained steer', (open) => {
  it('fails a steer with its run once a tool was started after reading it', async () => {
    const { run, end, outcomes, told } = await steered(open());
    await callTool(open(), run, true);
    await end('error');
    expect(await outcomes()).toEqual(['failed: error', 'failed: error', 'none']);
    expect(await told()).toEqual(['first', 'steer']);
  });

  it('requeues a steer if the tool turn was cut off before its first tool', async () => {
    const { run, end, outcomes } = await steered(open());
    await callTool(open(), run, false);
    await end('error');
    expect(await outcomes()).toEqual(['failed: error', 'none', 'none']);
  });

  it('requeues a steer if the answer was finished and never sent', async () => {
    const { end, outcomes } = await steered(open());
    await end('interrupt', 'end_turn');
    expect(await outcomes()).toEqual(['cancelled: interrupt', 'none', 'none']);
  });

  it("cancels a retained steer on its own sender's /stop and requeues it after another person's", async () => {
    const stop = { kind: 'stop', isPrivileged: true, isAll: false } as const;
    const own = await steered(open());
    await own.command(stop, 'ann');
    await own.end('stop');
    expect(await own.outcomes()).toEqual(['cancelled: stop', 'cancelled: stop', 'cancelled: stop']);
    const other = await steered(open(), 'bob');
    await other.command(stop, 'ann');
    await other.end('stop');
    expect(await other.outcomes()).toEqual(['cancelled: stop', 'none', 'cancelled: stop']);
  });

  it("cancels a retained steer on its own sender's /new and runs it before another person's", async () => {
    for (const [sender, outcome] of [
      ['ann', 'cancelled: reset'],
      ['bob', 'none'],
    ] as const) {
      const { worker, say, end, outcomes } = await steered(open(), sender);
      const message = say('/new', 'ann');
      if (message.decision.kind !== 'accept') return;
      const { item } = message.decision;
      const content = { ...item.content, command: newCommand };
      const command = { kind: 'accept', item: { ...item, kind: 'command', content } } as const;
      await worker.accept({ ...message, decision: command });
      await end('reset');
      expect(await outcomes()).toEqual(['cancelled: reset', outcome, 'none', 'none']);
    }
  });

  it('deletes a steer together with its corrections', async () => {
    const { worker, run, steer, conversation, end, outcomes } = await steered(open());
    const edit = { kind: 'edit', text: 'better', prompt: 'better', note: '', newId: unique('edit') } as const;
    await worker.accept({ ...steer, eventKey: unique('edit'), kind: 'edit', decision: edit });
    const { steers } = await open().write(takeSteers, { ...run, framing, delivery: 'all' });
    expect(steers).toHaveLength(2);
    const decision = { kind: 'delete', note: 'deleted {message}', route: aRoute(conversation) } as const;
    await worker.accept({ ...steer, eventKey: unique('delete'), kind: 'delete', decision });
    await end('error');
    expect(await outcomes()).toEqual(['failed: error', 'failed: error', 'none', 'failed: error']);
  });

  it("doesn't requeue the correction of a message with the same id elsewhere", async () => {
    const settings = { ...defaults, mode: 'steer-backlog' } as const;
    const lane = aLane(unique('c'), { settings });
    const worker = aWorker(open());
    const say = (conversation: string, text: string, messageId = unique('m')) =>
      aMessage({ conversation, text, lane, messageId, eventKey: unique('event') });
    const theirs = say(unique('c'), 'theirs', '7');
    await worker.accept(theirs);
    const other = await worker.claimRun(lane.key);
    const own = unique('c');
    await worker.accept(say(own, 'first'));
    const edit = { kind: 'edit', text: 'better', prompt: 'better', note: '', newId: unique('edit') } as const;
    await worker.accept({ ...theirs, eventKey: unique('edit'), kind: 'edit', decision: edit });
    await endWithout(open(), other, 'error');
    const run = await worker.claimRun(lane.key);
    await worker.accept(say(own, 'steer', '7'));
    const actor = { ref: 'console', people: [], mayChangeAny: true, mayPromoteOwn: true };
    await open().write(promoteItem, { laneKey: lane.key, number: 4, actor });
    const { steers } = await open().write(takeSteers, { ...run, framing, delivery: 'one-at-a-time' });
    expect(steers).toHaveLength(1);
    await endWithout(open(), run, 'error');
    const waiting = (await readLane(open(), lane.key)).inbox.filter(({ state }) => state === 'waiting');
    expect(waiting).toHaveLength(2);
  });
});
