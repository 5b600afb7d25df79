import { expect, it, onTestFinished } from 'vitest';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { playNext } from './run-builders.ts';

describeEachDatabase('a model call in progress', (open, beside) => {
  it('holds no lock, so that another process accepts messages for the lane and works on others (pitfall 13)', async () => {
    const other = await beside.open();
    onTestFinished(() => other.close());
    const [here, elsewhere] = [aConversation(other), aConversation(other)];
    await here.say('one');
    const model = scriptedModel(async function* () {
      // If a transaction were open here, all of this would wait forever, or until a lock timed out.
      await here.say('two');
      await elsewhere.answer(await elsewhere.begin('three'), 'ok');
      yield* says('here');
    });
    await playNext(open(), here.laneKey, { model });
    const [busy, beneath] = await Promise.all(
      [here, elsewhere].map(({ laneKey }) => readLane(open(), laneKey)),
    );
    expect(busy?.told.map(({ text }) => text)).toEqual(['one', 'two']);
    expect(busy?.openRuns).toBe(0);
    expect(beneath?.inbox.map(({ outcome }) => outcome)).toEqual(['answered']);
  });
});
