import { expect, it } from 'vitest';
import type { AgentId, RunId, SessionId, SessionKey } from '#contracts/ids.ts';
import { boundResult } from '../../src/agent/tool-result.ts';
import { createSessionsHistoryTool } from '../../src/tools/sessions.ts';
import { aLane, aMessage, aWorker, unique } from '../store/builders.ts';
import { aStore } from '../support/own-store.ts';

it('shows the newest messages of a long history, and says which are left out', async () => {
  const { store } = await aStore();
  const worker = aWorker(store);
  const conversation = unique('c');
  const { key } = aLane(conversation);
  let sessionId = '';
  for (const [word, length] of [
    ['first', 20_000],
    ['second', 20_000],
    ['third', 10_000],
  ] as const) {
    await worker.accept(aMessage({ conversation, text: `${word} ${'é'.repeat(length / 2)}` }));
    const run = await worker.claimRun(key);
    sessionId = run.sessionId;
    await worker.answer(run, `answer to the ${word}`);
  }
  const run = {
    runId: 'run' as RunId,
    sessionId: sessionId as SessionId,
    sessionKey: key as SessionKey,
    agentId: 'main' as AgentId,
    authority: 'guest',
    workspace: '/nowhere',
    epoch: 1,
  } as const;
  const tool = createSessionsHistoryTool(store, run);
  const ctx = { callId: 'call', run, signal: new AbortController().signal, update: () => undefined };
  const read = async (input: object) => {
    const output = await tool.execute({ limit: 30, ...input }, ctx);
    if ('parked' in output) throw new Error('it waits');
    // As the model gets it.
    return boundResult({ output, isError: false }).output.text;
  };

  const newest = await read({});
  expect(newest).toMatch(/^\[1 earlier message left out for their length; continue with before: (\d+)\]\n/);
  expect(newest).toMatch(/answer to the first\n#\d+ user: .*second é[\s\S]*answer to the third$/);
  const [, before] = /before: (\d+)/.exec(newest) ?? [];
  expect(await read({ before: Number(before) })).toMatch(/^#\d+ user: .*first é+$/);
});
