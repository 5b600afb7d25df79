import { expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { Clock } from '../../src/contracts/clock.ts';
import type { Store } from '../../src/store/base/command.ts';
import { commitAnswer } from '../../src/store/lanes/commit-answer.ts';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { playNext } from './run-builders.ts';

describeEachDatabase('a run that times out as its answer takes another message', (open) => {
  it('continues the run and answers the message that it took as its time ran out', async () => {
    const { laneKey, say } = aConversation(open());
    await say('one');
    const timeOver = Promise.withResolvers<void>();
    const clock: Clock = {
      ...systemClock,
      wait: (ms, signal) => Promise.race([systemClock.wait(ms, signal), timeOver.promise]),
    };
    const store: Store = {
      ...open(),
      write: async (command, input) => {
        const output = await open().write(command, input);
        if (command.name === commitAnswer.name) {
          timeOver.resolve();
          await new Promise(setImmediate);
        }
        return output;
      },
    };
    const answering = scriptedModel(async function* () {
      await say('two');
      yield* says('the first answer');
    });
    const cut = await playNext(open(), laneKey, { model: answering, over: { store, clock } });
    const resumed = await playNext(open(), laneKey, { model: scriptedModel(says('the second answer')) });

    expect(cut.exit).toEqual({ kind: 'handed-over' });
    expect(resumed.run).toMatchObject({ runId: cut.run.runId, isResumed: true });
    const { inbox, told, openRuns } = await readLane(open(), laneKey);
    expect(told.map(({ text }) => text)).toEqual(['one', 'two']);
    expect(inbox.map(({ outcome }) => outcome)).toEqual(['answered', 'answered']);
    expect(openRuns).toBe(0);
  });
});
