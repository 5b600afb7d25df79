import { expect, it } from 'vitest';
import { type AgentId, messageId, type RunId, type SessionId, type SessionKey } from '#contracts/ids.ts';
import type { ToolContext, ToolRun } from '#contracts/tool.ts';
import { boundResult } from '../../src/agent/tool-result.ts';
import { createSessionsHistoryTool } from '../../src/tools/sessions.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aLane, aMessage, aWorker, unique } from '../store/builders.ts';
import { aStore } from '../support/own-store.ts';

/** Returns what a guest's call in a session is given. */
function inSession(sessionId: string, laneKey: string): { readonly run: ToolRun; readonly ctx: ToolContext } {
  const run: ToolRun = {
    runId: 'run' as RunId,
    sessionId: sessionId as SessionId,
    sessionKey: laneKey as SessionKey,
    agentId: 'main' as AgentId,
    authority: 'guest',
    workspace: '/nowhere',
    epoch: 1,
  };
  const { signal } = new AbortController();
  return { run, ctx: { callId: 'call', run, signal, update: () => undefined } };
}

it('shows the newest messages of a long history and says how many are left out', async () => {
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
  const { run, ctx } = inSession(sessionId, key);
  const tool = createSessionsHistoryTool(store, run);
  const read = async (input: object) => {
    const output = await tool.execute({ limit: 30, ...input }, ctx);
    if ('parked' in output) throw new Error('it waits');
    // As the model receives it.
    return boundResult({ output, isError: false }).output.text;
  };

  const newest = await read({});
  expect(newest).toMatch(/^\[1 earlier message left out for their length; continue with before: (\d+)\]\n/);
  expect(newest).toMatch(/answer to the first\n#\d+ user: .*second é[\s\S]*answer to the third$/);
  const [, before] = /before: (\d+)/.exec(newest) ?? [];
  expect(await read({ before: Number(before) })).toMatch(/^#\d+ user: .*first é+$/);
});

it("names messages by their network's ids, for tools that refer to them", async () => {
  const { store } = await aStore();
  const { laneKey, begin, answer, deliver } = aConversation(store);
  const first = await begin('first', { messageId: 'm1' });
  await answer(first, 'the answer');
  await deliver({ kind: 'sent', receipts: [messageId('m2')] });
  await answer(await begin('second', { messageId: 'm3' }), 'on its way');
  const { run, ctx } = inSession(first.sessionId, laneKey);
  const output = await createSessionsHistoryTool(store, run).execute({ limit: 30 }, ctx);
  expect('text' in output && output.text.split('\n').map((line) => line.replace(/^#\d+ /, ''))).toEqual([
    expect.stringMatching(/^user: \[message m1\] .*first$/s),
    'assistant: [message m2] the answer',
    expect.stringMatching(/^user: \[message m3\] .*second$/s),
    'assistant: on its way',
  ]);
});
