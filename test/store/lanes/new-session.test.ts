import { expect, it } from 'vitest';
import type { Proposal } from '../../../src/store/intake/proposal.ts';
import { readTimeline } from '../../../src/store/reads/read-timeline.ts';
import { noticesFor } from '../../../src/texts/notices.ts';
import { aLane, aMessage, aWorker, defaults, newCommand, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readLane } from '../lane-at-rest.ts';

describeEachDatabase('a new session', (open) => {
  const aNewSession = (conversation: string, lane = aLane(conversation)): Proposal => {
    const message = aMessage({ conversation, text: '/new', lane });
    if (message.decision.kind !== 'accept') throw new Error('unreachable');
    const { item } = message.decision;
    const content = { ...item.content, command: newCommand };
    return { ...message, decision: { kind: 'accept', item: { ...item, kind: 'command', content } } };
  };

  it('keeps what the cap summarised behind the command and ends what it summarised before', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const lane = aLane(conversation, { settings: { ...defaults, mode: 'followup', cap: 1 } });
    const say = (text: string) => aMessage({ conversation, text, lane });
    await worker.accept(say('old'), aNewSession(conversation, lane), say('young'), say('youngest'));
    expect((await worker.claim(lane.key)).kind).toBe('again');
    const run = await worker.claimRun(lane.key);
    await worker.answer(run, 'ok');
    const { told, inbox } = await readLane(open(), lane.key);
    expect(told.map(({ text }) => text)).toEqual(['<overflow>\nyoung\n</context>', 'youngest']);
    expect(inbox.map(({ outcome, reason }) => `${outcome} ${reason}`)).toEqual([
      'cancelled reset',
      'answered command',
      'merged summarized',
      'answered null',
    ]);
  });

  it('answers the command in the timeline, where a page finds it after a reload', async () => {
    const conversation = unique('c');
    const { key: laneKey } = aLane(conversation);
    const worker = aWorker(open());
    await worker.accept(aNewSession(conversation));
    await worker.claim(laneKey);
    const items = await open().read(readTimeline, { laneKey, limit: 10 });
    expect(items.map((item) => item.text)).toEqual(['/new', noticesFor('en').newSession]);
  });

  it('forgets what the group said before the command and keeps what it said after', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const lane = aLane(conversation);
    const overheard = (text: string) => aMessage({ conversation, text, lane, item: { passesGate: false } });
    await worker.accept(overheard('old talk'), aNewSession(conversation), overheard('young talk'));
    expect((await worker.claim(lane.key)).kind).toBe('again');
    await worker.accept(aMessage({ conversation, text: '@bot well?', lane }));
    await worker.claimRun(lane.key);
    const { told } = await readLane(open(), lane.key);
    expect(told.map(({ text }) => text)).toEqual(['<context>\nyoung talk\n</context>', '@bot well?']);
  });
});
