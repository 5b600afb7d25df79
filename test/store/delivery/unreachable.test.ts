import { expect, it, onTestFinished } from 'vitest';
import { aConversation } from '../a-conversation.ts';
import { aLane, aMessage, aWorker, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readLane } from '../lane-at-rest.ts';

describeEachDatabase('a person who blocks the bot', (open, beside) => {
  const blocked = (message: ReturnType<typeof aMessage>) => ({
    ...message,
    eventKey: unique('membership'),
    kind: 'membership',
    decision: { kind: 'membership', isMember: false } as const,
  });
  const outcomes = async (laneKey: string) =>
    (await readLane(open(), laneKey)).inbox.map(({ state, outcome }) => `${state} ${outcome}`);

  it('fails the message if its sender blocks the bot while the run works', async () => {
    const { worker, saying, claimRun, answer } = aConversation(open());
    const message = saying();
    await worker.accept(message);
    const run = await claimRun();
    await worker.accept(blocked(message));
    await answer(run, 'hello');
    expect(await outcomes(run.laneKey)).toEqual(['ended failed']);
  });

  it('fails the message if its sender blocks the bot before the answer is sent', async () => {
    const { worker, saying, claimRun, answer } = aConversation(open());
    const message = saying();
    await worker.accept(message);
    const run = await claimRun();
    await answer(run, 'hello');
    await worker.accept(blocked(message));
    expect(await outcomes(run.laneKey)).toEqual(['ended failed']);
  });

  it('fails the waiting messages of a person who blocks the bot', async () => {
    const { laneKey, worker, saying, claim } = aConversation(open());
    const message = saying();
    await worker.accept(message);
    await worker.accept(blocked(message));
    expect((await claim()).kind).toBe('idle');
    expect(await outcomes(laneKey)).toEqual(['ended failed']);
  });

  it('fails even the summarized messages of a person who blocks the bot', async () => {
    const { laneKey, worker, saying, claimRun } = aConversation(open(), { settings: { cap: 1 } });
    const messages = ['one', 'two', 'three'].map((text) => saying(text));
    await worker.accept(...messages);
    await worker.accept(blocked(messages[0] ?? expect.fail('nothing was said')));
    expect(await outcomes(laneKey)).toEqual(['ended failed', 'ended failed', 'ended failed']);
    await worker.accept(saying('back'));
    await claimRun();
    expect((await readLane(open(), laneKey)).told.map(({ text }) => text)).toEqual(['back']);
  });

  it('gives a message one outcome if its sender blocks the bot just as it is taken', async () => {
    const other = await beside.open();
    onTestFinished(() => other.close());
    const [receiver, runner] = [aWorker(open()), aWorker(other, 'boot-runner')];
    for (let n = 0; n < 60; n++) {
      const conversation = unique('c');
      const { key } = aLane(conversation);
      const message = aMessage({ conversation, text: 'hi' });
      await receiver.accept(message);
      const [claim] = await Promise.all([runner.claim(key), receiver.accept(blocked(message))]);
      if (claim.kind === 'run') await runner.answer(claim.run, 'hello');
      expect(await outcomes(key)).toEqual(['ended failed']);
    }
  });
});
