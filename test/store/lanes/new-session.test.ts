import { expect, it } from 'vitest';
import { readTimeline } from '../../../src/store/reads/read-timeline.ts';
import { textsFor } from '../../../src/texts/chat-texts.ts';
import { aConversation } from '../a-conversation.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readLane } from '../lane-at-rest.ts';

describeEachDatabase('a new session', (open) => {
  const command = { item: { kind: 'command' } } as const;

  it('keeps what the cap summarized after the command and ends what it summarized before', async () => {
    const { lane, worker, saying, claim, claimRun, answer } = aConversation(open(), {
      settings: { mode: 'followup', cap: 1 },
    });
    const say = (text: string) => saying(text);
    await worker.accept(say('old'), saying('/new', command), say('young'), say('youngest'));
    expect((await claim()).kind).toBe('again');
    const run = await claimRun();
    await answer(run, 'ok');
    const { told, inbox } = await readLane(open(), lane.key);
    expect(told.map(({ text }) => text)).toEqual(['<overflow>\nyoung\n</context>', 'youngest']);
    expect(inbox.map(({ outcome, reason }) => `${outcome} ${reason}`)).toEqual([
      'cancelled reset',
      'answered command',
      'merged summarized',
      'answered null',
    ]);
  });

  it('answers the command in the timeline, so that a page finds it after a reload', async () => {
    const { laneKey, worker, saying, claim } = aConversation(open());
    await worker.accept(saying('/new', command));
    await claim();
    const items = await open().read(readTimeline, { laneKey, limit: 10 });
    expect(items.map((item) => item.text)).toEqual(['/new', textsFor('en').newSession]);
  });

  it('forgets what the group said before the command and keeps what it said after', async () => {
    const { lane, worker, saying, claim, begin } = aConversation(open());
    const overheard = (text: string) => saying(text, { item: { passesGate: false } });
    await worker.accept(overheard('old talk'), saying('/new', command), overheard('young talk'));
    expect((await claim()).kind).toBe('again');
    await begin('@bot well?');
    const { told } = await readLane(open(), lane.key);
    expect(told.map(({ text }) => text)).toEqual(['<context>\nyoung talk\n</context>', '@bot well?']);
  });
});
