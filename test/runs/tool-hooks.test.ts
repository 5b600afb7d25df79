import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { HookEvents, HookName } from '../../src/contracts/hook.ts';
import type { MessagePart } from '../../src/contracts/message.ts';
import { defineTool } from '../../src/contracts/tool.ts';
import { createHooks } from '../../src/hooks/hooks.ts';
import { toolHooksOf } from '../../src/runs/run-hooks.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { json } from '../../src/store/base/json.ts';
import { aRun } from '../agent/support/builders.ts';
import { callsTools, type Play, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { openOwnStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';
import { playNext } from './run-builders.ts';

const someHooks = () => createHooks({ log: silentLog, clock: systemClock });

/** The stored results of a session's calls, and whether each counts as failed. */
const readResults: StoreQuery<
  { readonly laneKey: string },
  readonly { readonly parts: readonly MessagePart[]; readonly isError: number | null }[]
> = {
  query: 'testResults',
  run: async (tx, { laneKey }) => {
    const rows = await tx.db
      .selectFrom('toolCalls')
      .innerJoin('runs', 'runs.id', 'toolCalls.runId')
      .select(['toolCalls.result', 'toolCalls.isError'])
      .where('runs.laneKey', '=', laneKey)
      .orderBy('toolCalls.ordinal')
      .execute();
    return rows.map(({ result, isError }) => ({ parts: json.parts(result ?? '[]'), isError }));
  },
};

describe('hooks of a run’s tools', () => {
  const store = openOwnStore();

  /** Plays one run whose tool `keep` notes what it was given and answers with a secret. */
  const play = async (
    on: Partial<Record<HookName, (event: never) => unknown>>,
    {
      plays = [callsTools({ id: '1', name: 'keep', input: { text: 'a' } }), says('done')] as readonly Play[],
    } = {},
  ) => {
    const hooks = someHooks();
    for (const [name, handler] of Object.entries(on))
      hooks.on(name as HookName, handler as never, { owner: 'test' });
    const { laneKey, say } = aConversation(store());
    await say('go');
    const ran: unknown[] = [];
    const keep = defineTool({
      name: 'keep',
      description: 'keeps a text',
      inputSchema: z.object({ text: z.string().max(5) }),
      parallelSafe: true,
      replay: 'safe',
      authority: 'guest',
      execute: async (input) => {
        ran.push(input);
        return { text: 'kept; token 1234', metadata: { token: '1234' } };
      },
    });
    const model = scriptedModel(...plays);
    const written: string[] = [];
    const watched: Store = {
      ...store(),
      write: async (command, input) => {
        written.push(JSON.stringify(input));
        return store().write(command, input);
      },
    };
    await playNext(watched, laneKey, { model, tools: [keep], over: { hooks } });
    return {
      ran,
      written: written.join(),
      results: await store().read(readResults, { laneKey }),
      shown: JSON.stringify(model.requests.at(-1)?.messages),
    };
  };

  it('shows a call before it runs, and its result after it', async () => {
    const seen: unknown[] = [];
    const note = (event: unknown) => void seen.push(event);
    await play({ before_tool_call: note, after_tool_call: note, tool_result_persist: note });
    const call = { id: '1', name: 'keep' };
    const result = { text: 'kept; token 1234', isError: false, images: 0, metadata: { token: '1234' } };
    expect(seen).toMatchObject([
      { call, input: { text: 'a' }, isAsked: false },
      { call, result },
      { call, source: 'tool', result },
    ]);
    expect((seen[0] as HookEvents['before_tool_call']).run).not.toHaveProperty('epoch');
  });

  it('runs a call with the input of a hook, checked again', async () => {
    const { ran } = await play({ before_tool_call: () => ({ kind: 'rewrite', input: { text: 'b' } }) });
    expect(ran).toEqual([{ text: 'b' }]);
    const wrong = await play({ before_tool_call: () => ({ kind: 'rewrite', input: { text: 'too long' } }) });
    expect(wrong.ran).toEqual([]);
    expect(wrong.shown).toContain('invalid input for keep, changed by a hook');
  });

  it.each([
    ['blocks it', () => ({ kind: 'block', reason: 'not on Sundays' }), 'blocked: not on Sundays'],
    ['fails', () => Promise.reject(new Error('secret detail')), 'blocked: the hook test failed'],
    ['answers in another form', () => 'go', 'blocked: the hook test failed'],
  ])('doesn’t run a call if a hook %s', async (_, handler, text) => {
    const { ran, shown } = await play({ before_tool_call: handler });
    expect(ran).toEqual([]);
    expect(shown).toContain(text);
    expect(shown).not.toContain('secret detail');
  });

  it('doesn’t let a hook change the input in place', async () => {
    const { ran } = await play({
      before_tool_call: ({ input }: { input: { text: string } }) => {
        input.text = 'changed behind the schema';
      },
    });
    expect(ran).toEqual([{ text: 'a' }]);
  });

  it('shows and stores a result as a hook has rewritten it', async () => {
    const { shown, written, results } = await play({
      after_tool_call: () => ({ kind: 'rewrite', text: 'kept', dropsMetadata: true }),
    });
    expect(shown).toContain('kept');
    for (const text of [shown, written, JSON.stringify(results)]) expect(text).not.toContain('1234');
  });

  it.each([
    ['after_tool_call', () => Promise.reject(new Error('no'))],
    ['after_tool_call', () => ({ kind: 'rewrite', text: 7 })],
  ] as const)('withholds a result if the hook %s fails', async (name, handler) => {
    const { shown, written, ran } = await play({ [name]: handler });
    expect(ran).toHaveLength(1);
    expect(shown).toContain('the result is withheld');
    expect(shown + written).not.toContain('1234');
  });

  it('stores a result only as tool_result_persist has left it', async () => {
    let calls = 0;
    const { written, results } = await play({
      tool_result_persist: () => {
        calls += 1;
        return { kind: 'rewrite', text: 'kept; token ****', dropsMetadata: true };
      },
    });
    expect(written).toContain('kept; token ****');
    expect(written).not.toContain('1234');
    expect(results).toMatchObject([{ parts: [{ data: { content: 'kept; token ****' } }], isError: 0 }]);
    expect(calls).toBe(1);
  });

  it('stores none of a result if tool_result_persist fails', async () => {
    const { written, results } = await play({
      tool_result_persist: () => {
        throw new Error('no');
      },
    });
    expect(written).not.toContain('1234');
    expect(results).toMatchObject([{ isError: 1 }]);
    expect(JSON.stringify(results)).toContain('the result is withheld');
  });

  it('gives the loop nothing to call if nobody is registered', () => {
    const hooks = someHooks();
    expect(toolHooksOf(hooks, aRun)).toEqual({});
    hooks.on('after_tool_call', () => undefined, { owner: 'test' });
    expect(Object.keys(toolHooksOf(hooks, aRun))).toEqual(['afterToolCall']);
  });
});
