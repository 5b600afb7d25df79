/** Public reports about approvals in other agents, each played here. */
import { expect, it } from 'vitest';
import { callsTools, says } from '../agent/support/scripted-model.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { call, openAsking, owner, readParts } from './asking-run.ts';

describeEachDatabase('approvals as others lost them', (store) => {
  const anAsking = async (...calls: readonly ReturnType<typeof call>[]) => {
    const run = openAsking(store());
    await run.say('go');
    await run.play(callsTools(...calls), says('never reached'));
    return run;
  };

  it('keeps two approvals of one tool apart (mastra 18041: keyed by the name of the tool, the second was lost)', async () => {
    const run = await anAsking(call('1', 'beside'), call('2', 'beside'));
    const [one, two] = await run.questions();
    expect(await run.press(two?.id ?? '', 'approve')).toMatchObject({ kind: 'approved' });
    expect(await run.press(one?.id ?? '', 'approve')).toMatchObject({ kind: 'approved' });
    await run.play(says('done'));
    expect(run.ran.toSorted()).toEqual(['1', '2']);
  });

  it('keeps a denied call denied after its run has ended (mastra 24796: a late approval ran it)', async () => {
    const run = await anAsking(call('1'));
    const [{ id = '' } = {}] = await run.questions();
    await run.decide('deny');
    await run.play(says('done'));
    expect(await run.press(id, 'approve', owner)).toMatchObject({ kind: 'late' });
    await run.say('go on');
    await run.play(says('done'));
    expect(run.ran).toEqual([]);
  });

  it('keeps equal call ids of two conversations apart (langgraph 6533, openai-agents-python 5141)', async () => {
    const [one, other] = [await anAsking(call('1')), await anAsking(call('1'))];
    await one.decide('approve');
    await one.play(says('done'));
    expect([one.ran, other.ran]).toEqual([['1'], []]);
    expect(await other.questions()).toHaveLength(1);
  });

  it('asks once however often its run is claimed (mastra 18031, 19301, 23626: asked again after a restart)', async () => {
    const run = await anAsking(call('1', 'beside'), call('2', 'beside'));
    const asked = (await run.questions()).map(({ id }) => id);
    await run.decide('approve');
    await expect(run.play(says('too early'))).rejects.toThrow();
    expect((await run.questions()).map(({ id }) => id)).toEqual(asked.slice(1));
    await run.decide('approve');
    await run.play(says('done'));
    expect([run.ran.length, await run.questions()]).toEqual([2, []]);
  });

  it('lets no other member of the group decide (hermes 24437), but any owner (hermes 48)', async () => {
    const run = await anAsking(call('1'));
    const [{ id = '' } = {}] = await run.questions();
    const member = {
      ref: 'test:bob',
      label: 'Bob',
      isOwner: false,
      authority: 'member',
      role: 'user',
    } as const;
    expect(await run.press(id, 'approve', member)).toMatchObject({ kind: 'foreign' });
    expect(await run.press(id, 'approve', owner)).toMatchObject({ kind: 'approved' });
  });

  it('says that a question has expired, and approves nothing (hermes 68597: a late tap showed "approved")', async () => {
    const run = openAsking(store(), { validMs: 0 });
    await run.say('go');
    await run.play(callsTools(call('1')), says('never reached'));
    await run.play(says('too late'));
    const parts = await store().read(readParts, { conversationKey: run.conversationKey });
    expect(parts[0]).toEqual({ text: expect.stringContaining('nobody answered in time'), buttons: [] });
    expect(run.ran).toEqual([]);
  });
});
