import { expect, it } from 'vitest';
import { readPartStates } from '../../../src/store/delivery/tool-send.ts';
import { acceptBatch } from '../../../src/store/intake/accept-batch.ts';
import type { ClaimTerms } from '../../../src/store/lanes/claim-due.ts';
import { addProcess } from '../../../src/store/processes/process-records.ts';
import { aConversation, aCourier } from '../a-conversation.ts';
import { account, aLane, aMessage, aWorker, demoOnly, framing, holder, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { aFamilyWorker } from '../family.ts';

const terms = (slots: number): ClaimTerms => ({
  holder,
  leaseMs: 10_000,
  framing,
  maxAttempts: 3,
  models: demoOnly,
  class: 'main',
  newRunIds: Array.from({ length: slots }, () => crypto.randomUUID()),
});
const policy = { holder, leaseMs: 60_000, repeatSafeMs: 0, canLookUp: false, resendUnknown: false };

describeEachDatabase('a commit that claims the next work', (open) => {
  /** Accepts with this many free slots. */
  const acceptWith = async (slots: number, ...said: Parameters<typeof aMessage>[0][]) => {
    const epoch = await aWorker(open()).hold();
    const proposals = said.map(aMessage);
    return open().write(acceptBatch, { account, epoch, holder, proposals, claims: terms(slots) });
  };

  it('claims as many due lanes as there are slots and wakes the others', async () => {
    const [a, b, c] = [unique('c'), unique('c'), unique('c')];
    const { runs, effects } = await acceptWith(
      2,
      { conversation: a, text: '1' },
      { conversation: b, text: '2' },
      { conversation: c, text: '3' },
      { conversation: c, text: '4' },
    );
    expect(runs.map((run) => run.laneKey)).toEqual([aLane(a).key, aLane(b).key]);
    expect(new Set(effects.wakes.map((wake) => wake.laneKey))).toEqual(new Set([aLane(c).key]));
    expect((await aWorker(open(), 'another').claim(aLane(a).key)).kind).toBe('busy');
    await aWorker(open()).answer(runs[0] ?? expect.fail('no run'), 'hello');
  });

  it('wakes nobody for a lane with an active run, which takes the message before it ends', async () => {
    const conversation = unique('c');
    const { runs } = await acceptWith(1, { conversation, text: 'first' });
    const second = await acceptWith(1, { conversation, text: 'second' });
    expect(second).toMatchObject({ runs: [], effects: { wakes: [], arrivals: [aLane(conversation).key] } });
    const [run = expect.fail('no run')] = runs;
    const { steers } = await aWorker(open()).answer(run, 'hello');
    expect(steers).toHaveLength(1);
  });

  it('returns all effects of a lane command, including stopped sub-agents', async () => {
    const family = aFamilyWorker(open());
    const { run, conversation } = await family.begin();
    const child = await family.spawnOne(run);
    await family.answer(run);
    const childRun = await family.claimRun(child.laneKey);
    const fresh = { conversation, text: '/new', item: { kind: 'command' } } as const;
    const { effects } = await acceptWith(1, fresh);
    expect(effects.cancels).toEqual([{ runId: childRun.runId, reason: 'stop' }]);
    expect(effects.stoppedChildren).toEqual([child.id]);
    await family.fail(childRun, 'stop');
  });

  it('claims nothing without slots', async () => {
    const conversation = unique('c');
    const { runs, effects } = await acceptWith(0, { conversation, text: 'hi' });
    expect([runs, effects.wakes.length]).toEqual([[], 1]);
  });

  it('claims the answer for its sender unless an earlier part is still being sent', async () => {
    const { conversationKey, say, claimRun, answer } = aConversation(open());
    await say('one');
    const first = await answer(await claimRun(), 'first', { sender: policy });
    expect(first.claimed?.delivery).toMatchObject({ kind: 'part', attempts: 1 });
    expect(first.effects.deliveries).toEqual([]);
    await say('two');
    const second = await answer(await claimRun(), 'second', { sender: policy });
    expect(second.claimed).toBeUndefined();
    expect(second.effects.deliveries).toEqual([conversationKey]);
  });

  it("claims the lane's next run when the last one ends, with its messages taken", async () => {
    const { say, claimRun, answer } = aConversation(open(), { settings: { mode: 'followup' } });
    for (const text of ['one', 'two', 'three']) await say(text);
    const first = await claimRun();
    const { newRunIds, class: _, ...claims } = terms(1);
    const [newRunId = ''] = newRunIds;
    const ended = await answer(first, 'first', { claims: { ...claims, newRunId } });
    expect(ended.nextRun).toMatchObject({ runId: newRunId, epoch: first.epoch + 1, isResumed: false });
    await expect(answer(first, 'late')).rejects.toThrow('another worker holds it');
    const second = await answer(ended.nextRun ?? expect.fail('no run'), 'second');
    expect([second.next, second.nextRun]).toEqual([{ kind: 'continuing' }, undefined]);
    expect(await claimRun()).toMatchObject({ epoch: first.epoch + 2 });
  });

  it.each([
    { begun: false, tells: 'had not begun is sent', kind: 'part', state: 'sending' },
    { begun: true, tells: 'had begun is unknown', kind: 'empty', state: 'unknown' },
  ])('handles the part of a holder that died: one whose call $tells', async ({ begun, kind, state }) => {
    const { conversationKey, begin, answer } = aConversation(open());
    const folder = unique('folder');
    const [dead, next] = [unique('boot'), unique('boot')];
    await open().write(addProcess, { id: dead, folder });
    const run = await begin();
    await answer(run, 'hello', { sender: { ...policy, holder: dead } });
    const key = `${run.runId}:1`;
    const sends = [{ holder: dead, begun: begun ? [key] : [] }];
    await open().write(addProcess, { id: next, folder, sends });
    expect((await aCourier(open(), conversationKey, { holder: next }).claimNext()).kind).toBe(kind);
    const [part] = await open().read(readPartStates, { keys: [key] });
    expect(part?.state).toBe(state);
  });
});
