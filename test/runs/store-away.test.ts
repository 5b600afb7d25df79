import { expect, it } from 'vitest';
import { z } from 'zod';
import { ParleyError } from '../../src/contracts/errors.ts';
import { defineTool, type Tool } from '../../src/contracts/tool.ts';
import { executeRun } from '../../src/runs/execute-run.ts';
import type { Store } from '../../src/store/base/command.ts';
import { releaseFailedRun } from '../../src/store/lanes/leases.ts';
import { needsBoundary } from '../../src/store/lanes/steer.ts';
import { callsTools, type ScriptedModel, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { holder } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { runDeps, someActiveRuns, untilDone } from './run-builders.ts';

const away = new ParleyError('store_unavailable', 'The store is away.');
const nothing = z.object({});

describeEachDatabase('a run whose store is away', (open) => {
  /** Stores a message; `play` makes one attempt at its run. */
  const begin = async () => {
    const { laneKey, say, claimRun } = aConversation(open());
    await say('one');
    const active = someActiveRuns(open(), holder);
    const play = async (model: ScriptedModel, { from = open(), tools = [] }: Playing = {}) => {
      const run = await claimRun();
      await executeRun(runDeps(from, { active, model, tools }), run, untilDone()).finally(() =>
        open()
          .write(releaseFailedRun, { ...run, pauseMs: 0 })
          .catch(() => undefined),
      );
    };
    const inbox = async () => (await readLane(open(), laneKey)).inbox;
    return { play, inbox, end: active.close };
  };

  it('throws to the holder if the store is away for the loop, and the next attempt answers', async () => {
    const { play, inbox, end } = await begin();
    const from: Store = {
      ...open(),
      read: (query, input) =>
        query.query === needsBoundary.query ? Promise.reject(away) : open().read(query, input),
    };
    await expect(play(scriptedModel(says('hello')), { from })).rejects.toBe(away);
    expect(await inbox()).toMatchObject([{ state: 'taken', outcome: null }]);
    await play(scriptedModel(says('hello')));
    await end();
    expect(await inbox()).toMatchObject([{ state: 'ended', outcome: 'answered' }]);
  });

  it('repeats a tool call in the next attempt if the store was away for the tool', async () => {
    const { play, inbox, end } = await begin();
    const made: string[] = [];
    const tool = defineTool<z.infer<typeof nothing>>({
      name: 'post',
      description: 'posts',
      inputSchema: nothing,
      parallelSafe: false,
      replay: 'durable',
      authority: 'guest',
      execute: async (_, { callId }) => {
        made.push(callId);
        // The first time, its step was committed but the result was lost.
        if (made.length === 1) throw away;
        return { text: 'It is posted.' };
      },
    });
    const tools = [tool];
    const first = play(scriptedModel(callsTools({ id: 'call', name: 'post' })), { tools });
    await expect(first).rejects.toBe(away);
    const model = scriptedModel(says('hello'));
    await play(model, { tools });
    await end();
    expect(made).toEqual([made[0], made[0]]);
    const read = JSON.stringify(model.requests[0]?.messages);
    expect(read).toContain('It is posted.');
    expect(read).not.toContain(away.message);
    expect(await inbox()).toMatchObject([{ state: 'ended', outcome: 'answered' }]);
  });
});

type Playing = { readonly from?: Store; readonly tools?: readonly Tool[] };
