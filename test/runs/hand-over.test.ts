import { describe, expect, it } from 'vitest';
import { readHistory } from '../../src/store/reads/read-transcript.ts';
import { aTool } from '../agent/support/builders.ts';
import { callsTools, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aLane, aMessage, aWorker, unique } from '../store/builders.ts';
import { openOwnStore } from '../support/own-store.ts';
import { playNext } from './run-builders.ts';

describe('a run that is handed over while its tools work', () => {
  const store = openOwnStore();

  /** Runs the lane's next or unfinished run in a process that is asked to stop while the tool `slow` works. */
  const play = async (
    conversation: string,
    { model, ran }: { model: ReturnType<typeof scriptedModel>; ran: string[] },
  ) => {
    const shutdown = new AbortController();
    const slow = aTool('slow', {
      replay: 'never',
      execute: async (_input, { signal }) => {
        shutdown.abort();
        await new Promise((resolve) => setTimeout(resolve, 30));
        if (signal.aborted) throw new Error('cut short');
        ran.push('slow');
        return { text: 'slow is done' };
      },
    });
    const quick = aTool('quick', {
      replay: 'never',
      execute: async () => {
        ran.push('quick');
        return { text: 'quick is done' };
      },
    });
    const { signal } = shutdown;
    const played = await playNext(store(), aLane(conversation).key, { model, tools: [slow, quick], signal });
    return played.run;
  };

  const resultsOf = async (sessionId: string) =>
    (await store().read(readHistory, { sessionId })).flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === 'tool_result' ? [part.data.content] : [])),
    );

  it('lets the tool in hand finish and leaves the calls behind it to the next process', async () => {
    const conversation = unique('c');
    const ran: string[] = [];
    await aWorker(store()).accept(aMessage({ conversation, text: 'go' }));
    const calls = callsTools({ id: '1', name: 'slow' }, { id: '2', name: 'quick' });
    await play(conversation, { model: scriptedModel(calls), ran });
    expect(ran).toEqual(['slow']);
    const run = await play(conversation, { model: scriptedModel(says('all done')), ran });
    expect(ran).toEqual(['slow', 'quick']);
    expect(await resultsOf(run.sessionId)).toEqual(['slow is done', 'quick is done']);
  });

  it('lets the tool in hand finish also behind calls that were refused', async () => {
    const conversation = unique('c');
    const ran: string[] = [];
    await aWorker(store()).accept(aMessage({ conversation, text: 'go' }));
    const model = scriptedModel(
      callsTools({ id: '1', name: 'no-such-tool' }),
      callsTools({ id: '2', name: 'slow' }),
    );
    const run = await play(conversation, { model, ran });
    expect(ran).toEqual(['slow']);
    expect((await resultsOf(run.sessionId)).at(-1)).toBe('slow is done');
  });
});
