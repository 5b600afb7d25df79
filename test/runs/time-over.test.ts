import { expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { Clock } from '../../src/contracts/clock.ts';
import { executeRun } from '../../src/runs/execute-run.ts';
import type { Store } from '../../src/store/base/command.ts';
import { commitAnswer } from '../../src/store/lanes/commit-answer.ts';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aLane, aMessage, aWorker, unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { runDeps, someActiveRuns } from './run-builders.ts';

const options = { signal: new AbortController().signal, mayKeepLane: () => false, claims: () => undefined };

describeEachDatabase('a run whose time is over just as its answer takes in another message', (open) => {
  it('is gone on with, and that message is answered', async () => {
    const conversation = unique('c');
    const door = aWorker(open(), unique('boot'));
    const holder = unique('boot');
    const active = someActiveRuns(open(), holder);
    const play = async (store: Store, clock: Clock, model: ReturnType<typeof scriptedModel>) => {
      const run = await aWorker(open(), holder).claimRun(aLane(conversation).key);
      const exit = await executeRun({ ...runDeps(store, { active, model, tools: [] }), clock }, run, options);
      return { run, exit };
    };
    await door.accept(aMessage({ conversation, text: 'one' }));
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
      await door.accept(aMessage({ conversation, text: 'two' }));
      yield* says('the first answer');
    });
    const cut = await play(store, clock, answering);
    const resumed = await play(open(), systemClock, scriptedModel(says('the second answer')));
    await active.close();

    expect(cut.exit).toEqual({ kind: 'handed-over' });
    expect(resumed.run).toMatchObject({ runId: cut.run.runId, isResumed: true });
    const { inbox, told, openRuns } = await readLane(open(), aLane(conversation).key);
    expect(told.map(({ text }) => text)).toEqual(['one', 'two']);
    expect(inbox.map(({ outcome }) => outcome)).toEqual(['answered', 'answered']);
    expect(openRuns).toBe(0);
  });
});
