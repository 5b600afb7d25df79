import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { finishReasonOf } from '#contracts/message.ts';
import { agentLoop } from '../../src/agent/loop.ts';
import type { AgentLoopConfig } from '../../src/agent/loop-config.ts';
import { aPng } from '../support/one-pixel.ts';
import {
  aConfig,
  aContext,
  aRun,
  aTool,
  type ConfigChanges,
  liveInbox,
  type ToolChanges,
  userSays,
} from './support/builders.ts';
import { grammarErrors } from './support/event-grammar.ts';
import { manualClock } from './support/manual-clock.ts';
import { endOf, hello, noSignal, only, play, playBatch, resultsOf } from './support/run-loop.ts';
import { callsTools, completes, says, scriptedModel, writesCall } from './support/scripted-model.ts';

function endsOf({ events }: Awaited<ReturnType<typeof playBatch>>) {
  return only(events, 'tool_execution_end').map(({ callId }) => callId);
}

/** Returns tools that end in the given order, whatever order they were started in. */
function gatedTools(endOrder: readonly string[], changes: ToolChanges = {}) {
  let ended = 0;
  const started: string[] = [];
  const turnOf = async (name: string) => {
    while (endOrder[ended] !== name) await new Promise((resolve) => setImmediate(resolve));
    ended += 1;
  };
  const tools = endOrder.toSorted().map((name) =>
    aTool(name, {
      parallelSafe: true,
      ...changes,
      execute: async () => {
        started.push(name);
        await turnOf(name);
        return { text: name };
      },
    }),
  );
  return { tools, started };
}

const threeCalls = ['a', 'b', 'c'].map((name, index) => ({ id: `${index + 1}`, name }));

describe('the order of a batch', () => {
  it('puts results into the transcript in source order and end events in completion order', async () => {
    const { tools } = gatedTools(['c', 'a', 'b']);
    const played = await playBatch(tools, threeCalls);
    expect(endsOf(played)).toEqual(['3', '1', '2']);
    expect(played.results).toEqual(['1: a', '2: b', '3: c']);
  });

  it('keeps blocked, invalid and unknown calls in source order among the others', async () => {
    const strict = aTool('strict', { parallelSafe: true, inputSchema: z.object({ path: z.string() }) });
    const { tools } = gatedTools(['c', 'a']);
    const calls = [
      { id: '1', name: 'a' },
      { id: '2', name: 'nothing' },
      { id: '3', name: 'strict', input: { path: 7 } },
      { id: '4', name: 'b' },
      { id: '5', name: 'strict', input: '{"path": ' },
      { id: '6', name: 'c' },
    ];
    const beforeToolCall: AgentLoopConfig['beforeToolCall'] = async (call) =>
      call.name === 'b' ? { kind: 'block', reason: 'not today' } : { kind: 'go' };
    const { results } = await playBatch([...tools, strict, aTool('b', { parallelSafe: true })], calls, {
      beforeToolCall,
    });
    expect(results.map((result) => result.split('\n')[0])).toEqual([
      '1: a',
      '2: unknown tool: nothing',
      expect.stringContaining('3: invalid input for strict: '),
      '4: blocked: not today',
      expect.stringContaining('5: invalid input for strict: '),
      '6: c',
    ]);
    expect(results[2]).toContain('path');
  });

  it("runs no call with an argument that its tool doesn't have, even a misspelled one", async () => {
    const sent: unknown[] = [];
    const message = aTool('message', {
      inputSchema: z.object({ text: z.string(), to: z.string().optional() }),
      execute: async (input) => ({ text: `sent ${sent.push(input)}` }),
    });
    const { results } = await playBatch(
      [message],
      [
        { id: '1', name: 'message', input: { text: 'for Ann alone', target: 'ann' } },
        { id: '2', name: 'message', input: { text: 'for Ann alone', to: 'ann' } },
      ],
    );
    expect(results).toEqual([
      '1: invalid input for message: unknown argument target; the tool takes text, to',
      '2: sent 1',
    ]);
    expect(sent).toEqual([{ text: 'for Ann alone', to: 'ann' }]);
  });

  it('runs calls in parallel only if every tool of the batch allows it', async () => {
    const log: string[] = [];
    const tool = (name: string, parallelSafe: boolean) =>
      aTool(name, {
        parallelSafe,
        execute: async () => {
          log.push(`${name}+`);
          await new Promise((resolve) => setImmediate(resolve));
          log.push(`${name}-`);
          return { text: name };
        },
      });
    const calls = threeCalls.slice(0, 2);
    await playBatch([tool('a', true), tool('b', true)], calls);
    await playBatch([tool('a', true), tool('b', false)], calls);
    await playBatch([tool('a', true), tool('b', true)], calls, { toolExecution: 'sequential' });
    await playBatch([tool('a', false), tool('b', false)], calls, { toolExecution: 'parallel' });
    const beside = ['a+', 'b+', 'a-', 'b-'];
    const after = ['a+', 'a-', 'b+', 'b-'];
    expect(log).toEqual([...beside, ...after, ...after, ...beside]);
  });

  it('emits partial output while the tool runs and none after it ended', async () => {
    let late: (() => void) | undefined;
    const tool = aTool('a', {
      execute: async (_input, ctx) => {
        ctx.update('half');
        late = () => ctx.update('too late');
        await new Promise((resolve) => setImmediate(resolve));
        return { text: 'whole' };
      },
    });
    const other = aTool('b', {
      execute: async () => {
        late?.();
        return { text: 'b' };
      },
    });
    const { events } = await playBatch([tool, other], threeCalls.slice(0, 2));
    expect(only(events, 'tool_execution_update')).toEqual([
      { type: 'tool_execution_update', callId: '1', text: 'half' },
    ]);
  });

  it('reports no partial output if a hook has to see the result first', async () => {
    const tool = aTool('a', {
      execute: async (_input, ctx) => {
        ctx.update('key=123');
        return { text: 'key=123' };
      },
    });
    const afterToolCall = async () => ({ output: { text: 'key=***' }, isError: false });
    const { events } = await playBatch([tool], threeCalls.slice(0, 1), { afterToolCall });
    expect(JSON.stringify(events)).not.toContain('key=123');
  });
});

describe('steering between the tools of a batch', () => {
  async function steered(changes: ConfigChanges, toolChanges: ToolChanges = {}) {
    const inbox = liveInbox();
    const ran: string[] = [];
    const tools = ['a', 'b', 'c'].map((name) =>
      aTool(name, {
        ...toolChanges,
        execute: async () => {
          ran.push(name);
          if (name === 'a') inbox.arrive(userSays('s1', 'stop that'));
          return { text: name };
        },
      }),
    );
    const played = await playBatch(tools, threeCalls, { ...changes, getSteeringMessages: inbox.poll });
    return { ...played, ran };
  }

  it('lets the running tool finish and skips the unstarted calls with a paired result', async () => {
    const { ran, results, model } = await steered({ steerTail: 'skip' });
    expect(ran).toEqual(['a']);
    expect(results).toEqual([
      '1: a',
      '2: skipped: a new message arrived',
      '3: skipped: a new message arrived',
    ]);
    expect(model.requests[1]?.messages.at(-1)?.content.at(-1)).toEqual({ type: 'text', text: 'stop that' });
  });

  it('runs the whole batch before a steer if configured', async () => {
    const { ran, model } = await steered({ steerTail: 'finish' });
    expect(ran).toEqual(['a', 'b', 'c']);
    expect(model.requests[1]?.messages.at(-1)?.content.at(-1)).toEqual({ type: 'text', text: 'stop that' });
  });

  it('takes messages at the end of the turn that arrived after a steer between its tools', async () => {
    const polled = [[], [userSays('s1', 'first')], [userSays('s2', 'second')]];
    const getSteeringMessages = async () => polled.shift() ?? [];
    const tools = [aTool('a'), aTool('b'), aTool('c')];
    const { model } = await playBatch(tools, threeCalls, { getSteeringMessages });
    expect(model.requests[1]?.messages.at(-1)?.content.slice(-2)).toEqual([
      { type: 'text', text: 'first' },
      { type: 'text', text: 'second' },
    ]);
  });

  it('never cancels part of a parallel batch for a steer', async () => {
    const { ran, model } = await steered({}, { parallelSafe: true });
    expect(ran).toEqual(['a', 'b', 'c']);
    expect(model.requests[1]?.messages.at(-1)?.content.at(-1)).toEqual({ type: 'text', text: 'stop that' });
  });
});

describe('permission', () => {
  it.each(['sequential', 'parallel'] as const)(
    'runs nothing further of a %s batch after a denial',
    async (toolExecution) => {
      const ran: string[] = [];
      const tools = ['a', 'b', 'c'].map((name) =>
        aTool(name, {
          execute: async () => {
            ran.push(name);
            return { text: name };
          },
        }),
      );
      const permit: AgentLoopConfig['permit'] = async ({ call }) =>
        call.name === 'b' ? 'denied' : 'allowed';
      const { results, events, model } = await playBatch(tools, threeCalls, { toolExecution, permit });
      expect(ran).toEqual(toolExecution === 'sequential' ? ['a'] : []);
      expect(results).toEqual([
        toolExecution === 'sequential' ? '1: a' : '1: cancelled',
        '2: permission denied',
        '3: cancelled',
      ]);
      const [turn] = only(events, 'turn_end');
      expect(finishReasonOf(turn?.message.parts ?? [])).toBe('permission_denied');
      expect(endOf(events).messages).toContainEqual(turn?.message);
      expect(model.requests).toHaveLength(2);
      expect(model.requests[0]?.tools).toHaveLength(3);
      expect(model.requests[1]?.tools).toEqual([]);
    },
  );

  it('answers after a denial even in the last allowed turn, and runs no tool for that answer', async () => {
    const permit: AgentLoopConfig['permit'] = async () => 'denied';
    const limits = { ...aConfig().limits, turns: 1 };
    const model = scriptedModel(
      callsTools({ id: '1', name: 'a' }),
      callsTools({ id: '2', name: 'a' }),
      says('no'),
    );
    const { events, messages } = await play(
      agentLoop([hello], aContext([aTool('a')]), aConfig({ model, permit, limits }), noSignal()),
    );
    expect(model.requests).toHaveLength(2);
    expect(resultsOf(messages)).toEqual([
      '1: permission denied',
      '2: not run: no tools are available for this answer',
    ]);
    expect(only(events, 'tool_execution_prepared')).toEqual([]);
    expect(endOf(events).reason).toBe('natural');
  });

  it('denies a tool that requires more authority than the run has', async () => {
    const { results } = await playBatch([aTool('a', { authority: 'owner' })], [{ id: '1', name: 'a' }], {
      run: { ...aRun, authority: 'member' },
    });
    expect(results).toEqual(['1: permission denied']);
  });

  it("doesn't run a call whose permission can't be checked", async () => {
    const permit = async (): Promise<never> => {
      throw new Error('no answer');
    };
    const { results, events } = await playBatch([aTool('a')], [{ id: '1', name: 'a' }], { permit });
    expect(results[0]).toContain('not run: its permission could not be checked');
    expect(only(events, 'tool_execution_prepared')).toEqual([]);
  });
});

describe("calls that don't run", () => {
  it('fails the calls of an answer that reached its length limit', async () => {
    let ran = 0;
    const tool = aTool('a', { execute: async () => ({ text: `${ran++}` }) });
    const model = scriptedModel([...writesCall({ id: '1', name: 'a' }), completes('max_tokens')], says('ok'));
    const { messages } = await play(agentLoop([hello], aContext([tool]), aConfig({ model }), noSignal()));
    expect(ran).toBe(0);
    expect(resultsOf(messages)[0]).toMatch(/^1: not run: the answer reached its length limit/);
    expect(model.requests).toHaveLength(2);
  });

  it("fails a call that the model didn't finish writing", async () => {
    const model = scriptedModel([...writesCall({ id: '1', name: 'a' }).slice(0, 3), completes('tool_use')]);
    const { messages } = await play(
      agentLoop([hello], aContext([aTool('a')]), aConfig({ model }), noSignal()),
    );
    expect(resultsOf(messages)).toEqual(['1: not run: the call was cut off before it was complete']);
  });

  it('blocks a call whose check throws', async () => {
    const beforeToolCall = async (): Promise<never> => {
      throw new Error('hook down');
    };
    const { results, events } = await playBatch([aTool('a')], [{ id: '1', name: 'a' }], { beforeToolCall });
    expect(results[0]).toContain('blocked: a check before the call failed');
    expect(only(events, 'tool_execution_prepared')).toEqual([]);
  });

  it('repairs arguments before validating them, and treats no arguments as an empty object', async () => {
    const seen: unknown[] = [];
    const tool = aTool('a', {
      inputSchema: z.object({ path: z.string().default('.') }),
      prepareArguments: (raw) => (Array.isArray(raw) ? { path: raw[0] } : raw),
      execute: async (input) => {
        seen.push(input);
        return { text: 'ok' };
      },
    });
    await playBatch(
      [tool],
      [
        { id: '1', name: 'a', input: ['x'] },
        { id: '2', name: 'a', input: '' },
      ],
    );
    expect(seen).toEqual([{ path: 'x' }, { path: '.' }]);
  });
});

describe('abort', () => {
  it.each(['sequential', 'parallel'] as const)(
    'gives every call of an aborted %s batch a result',
    async (toolExecution) => {
      const controller = new AbortController();
      const tools = ['a', 'b', 'c'].map((name) =>
        aTool(name, {
          execute: (_input, { signal }) =>
            new Promise((_resolve, reject) => {
              signal.addEventListener('abort', () => reject(new Error('stopped')));
              if (name === 'a') setImmediate(() => controller.abort());
            }),
        }),
      );
      const model = scriptedModel(callsTools(...threeCalls));
      const { events, messages } = await play(
        agentLoop([hello], aContext(tools), aConfig({ model, toolExecution }), controller.signal),
      );
      expect(resultsOf(messages)).toEqual(['1', '2', '3'].map((id) => `${id}: cancelled by user`));
      expect(finishReasonOf(only(events, 'turn_end')[0]?.message.parts ?? [])).toBe('canceled');
      expect(endOf(events).reason).toBe('aborted');
      expect(model.requests).toHaveLength(1);
      expect(grammarErrors(events)).toEqual([]);
    },
  );

  it("doesn't wait for a tool that ignores its signal", async () => {
    const clock = manualClock();
    const controller = new AbortController();
    const tool = aTool('a', {
      execute: () => {
        setImmediate(() => {
          controller.abort();
          setImmediate(() => clock.advance(1000));
        });
        return new Promise(() => undefined);
      },
    });
    const model = scriptedModel(callsTools({ id: '1', name: 'a' }));
    const { messages } = await play(
      agentLoop([hello], aContext([tool]), aConfig({ model, clock }), controller.signal),
    );
    expect(resultsOf(messages)[0]).toMatch(/^1: cancelled by user; .*outcome unknown$/);
    expect(clock.waiting()).toBe(0);
  });

  it('keeps the true result of a tool that finishes its work after the abort', async () => {
    const controller = new AbortController();
    const tool = aTool('a', {
      execute: async () => {
        controller.abort();
        await new Promise((resolve) => setImmediate(resolve));
        return { text: 'sent' };
      },
    });
    const model = scriptedModel(callsTools({ id: '1', name: 'a' }));
    const { messages } = await play(
      agentLoop([hello], aContext([tool]), aConfig({ model }), controller.signal),
    );
    expect(resultsOf(messages)).toEqual(['1: sent']);
  });

  it("doesn't wait for an approval after the abort", async () => {
    const controller = new AbortController();
    const permit = () => {
      setImmediate(() => controller.abort());
      return new Promise<never>(() => undefined);
    };
    const model = scriptedModel(callsTools({ id: '1', name: 'a' }));
    const { messages } = await play(
      agentLoop([hello], aContext([aTool('a')]), aConfig({ model, permit }), controller.signal),
    );
    expect(resultsOf(messages)).toEqual(['1: cancelled by user']);
  });
});

describe('results', () => {
  const resultOf = async (changes: ToolChanges, config: ConfigChanges = {}) => {
    const { events, results } = await playBatch([aTool('a', changes)], [{ id: '1', name: 'a' }], config);
    const [end] = only(events, 'tool_execution_end');
    return { end, text: results[0]?.slice('1: '.length) ?? '' };
  };

  it('turns an error thrown by a tool into an error result', async () => {
    const { end, text } = await resultOf({
      execute: () => {
        throw new Error('no such file');
      },
    });
    expect(end?.isError).toBe(true);
    expect(text).toBe('no such file');
  });

  it('cuts text over 32 KB with a note, between characters', async () => {
    const { text } = await resultOf({ execute: async () => ({ text: `x${'😀'.repeat(20_000)}` }) });
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(32 * 1024);
    expect(Buffer.byteLength(text)).toBeGreaterThan(32 * 1024 - 200);
    expect(text).toMatch(/\[cut here: the whole text has 80001 bytes, the limit is 32768\]$/);
    expect(text.isWellFormed()).toBe(true);
    expect(text).not.toContain('\ufffd');
  });

  it('replaces characters that databases refuse', async () => {
    const { text } = await resultOf({ execute: async () => ({ text: 'a\u0000b\ud800c' }) });
    expect(text).toBe('a\ufffdb\ufffdc');
  });

  it('shows images to the model and leaves out oversized or invalid ones', async () => {
    const png = aPng;
    const images = [
      png,
      { mimeType: 'image/png', base64: 'AAAA' },
      { ...png, base64: 'A'.repeat(8_000_000) },
    ];
    const { model, results } = await playBatch(
      [aTool('a', { execute: async () => ({ text: 'seen', images }) })],
      [{ id: '1', name: 'a' }],
    );
    expect(results[0]).toContain('left out: 2 images');
    expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
      { type: 'tool_result', toolCallId: '1' },
      { type: 'image', ...png },
    ]);
  });

  it('survives a tool that returns nothing', async () => {
    // A plugin may be untyped.
    const nonsense = undefined as unknown as { text: string };
    const { end } = await resultOf({ execute: async () => nonsense });
    expect(end).toMatchObject({ isError: true, result: { text: 'the tool returned no text' } });
  });

  it.each([{ parked: null }, { parked: { reason: 7 } }])(
    'survives a tool that parks with %j',
    async (parked) => {
      const nonsense = parked as unknown as { text: string };
      const { end } = await resultOf({ replay: 'durable', execute: async () => nonsense });
      expect(end?.isError).toBe(true);
    },
  );

  it('withholds a result if a hook returns nothing', async () => {
    const afterToolCall = async () => undefined as never;
    const { end, text } = await resultOf({ execute: async () => ({ text: 'key=123' }) }, { afterToolCall });
    expect(end?.isError).toBe(true);
    expect(text).not.toContain('123');
  });

  it('lets a hook rewrite a result and withholds it if the hook fails', async () => {
    const rewritten = await resultOf(
      { execute: async () => ({ text: 'key=123' }) },
      { afterToolCall: async (_call, { isError }) => ({ output: { text: 'key=***' }, isError }) },
    );
    expect(rewritten.text).toBe('key=***');
    const failed = await resultOf(
      { execute: async () => ({ text: 'key=123' }) },
      {
        afterToolCall: async () => {
          throw new Error('redaction down');
        },
      },
    );
    expect(failed.text).not.toContain('123');
    expect(failed.end?.isError).toBe(true);
  });
});
