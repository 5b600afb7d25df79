import { describe, expect, it } from 'vitest';
import type { AgentEvent } from '#contracts/agent-event.ts';
import { ParleyError } from '#contracts/errors.ts';
import { finishReasonOf, textOf } from '#contracts/message.ts';
import { agentLoop, agentLoopContinue } from '../../src/agent/loop.ts';
import { aConfig, aContext, aMessage, aTool, inboxOf, liveInbox, userSays } from './support/builders.ts';
import { grammarErrors } from './support/event-grammar.ts';
import { manualClock } from './support/manual-clock.ts';
import { endOf, hello, lastUserText, noSignal, only, play, resultsOf } from './support/run-loop.ts';
import {
  callsTools,
  completes,
  hangsAfter,
  type Play,
  says,
  scriptedModel,
  writesCall,
} from './support/scripted-model.ts';

describe('events of a run', () => {
  it('emits the events of a plain answer in the documented order', async () => {
    const model = scriptedModel(says('hi'));
    const { events, messages } = await play(agentLoop([hello], aContext(), aConfig({ model }), noSignal()));
    expect(events.map(({ type }) => type)).toEqual([
      'agent_start',
      'turn_start',
      'message_start',
      'message_end',
      'message_start',
      'message_update',
      'message_update',
      'message_update',
      'message_end',
      'turn_end',
      'agent_end',
    ]);
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
    expect(endOf(events)).toMatchObject({ reason: 'natural', messages });
    expect(grammarErrors(events)).toEqual([]);
  });

  it('adds the finish part to an answer only at message_end', async () => {
    const model = scriptedModel(says('hi'));
    const { events } = await play(agentLoop([hello], aContext(), aConfig({ model }), noSignal()));
    const updates = only(events, 'message_update').map(({ message }) => finishReasonOf(message.parts));
    const [, end] = only(events, 'message_end');
    expect(updates.every((reason) => reason === undefined)).toBe(true);
    expect(finishReasonOf(end?.message.parts ?? [])).toBe('end_turn');
    expect(end).toMatchObject({ cost: 7, message: { model: 'scripted' } });
  });

  it('starts no tool before the consumer has handled message_end and tool_execution_prepared', async () => {
    const log: string[] = [];
    const tools = ['a', 'b'].map((name) =>
      aTool(name, {
        parallelSafe: true,
        execute: async () => {
          log.push(`run ${name}`);
          return { text: name };
        },
      }),
    );
    const model = scriptedModel(callsTools({ id: '1', name: 'a' }, { id: '2', name: 'b' }));
    const slowly = async (event: AgentEvent) => {
      if (event.type !== 'message_end' && event.type !== 'tool_execution_prepared') return;
      await new Promise((resolve) => setImmediate(resolve));
      log.push(event.type === 'message_end' ? `stored ${event.message.role}` : `started ${event.call.name}`);
    };
    await play(agentLoop([hello], aContext(tools), aConfig({ model }), noSignal()), slowly);
    expect(log.slice(0, 4)).toEqual(['stored user', 'stored assistant', 'started a', 'started b']);
    expect(log.slice(4, 6)).toEqual(['run a', 'run b']);
  });

  it('shows the model the results and continues until it makes no call', async () => {
    const model = scriptedModel(
      callsTools({ id: '1', name: 'a' }),
      callsTools({ id: '2', name: 'a', input: { x: 1 } }),
      says('ok'),
    );
    const { events } = await play(agentLoop([hello], aContext([aTool('a')]), aConfig({ model }), noSignal()));
    expect(model.requests).toHaveLength(3);
    expect(model.requests[1]?.messages.at(-1)).toEqual({
      role: 'user',
      content: [{ type: 'tool_result', toolCallId: '1', content: 'a ran', isError: false }],
    });
    expect(only(events, 'turn_end').map(({ toolResults }) => resultsOf(toolResults))).toEqual([
      ['1: a ran'],
      ['2: a ran'],
      [],
    ]);
  });

  it("continues a transcript that ends with a person's message", async () => {
    const model = scriptedModel(says('hi'));
    const { messages } = await play(agentLoopContinue(aContext([], [hello]), aConfig({ model }), noSignal()));
    expect(messages.map(({ role }) => role)).toEqual(['assistant']);
    expect(lastUserText(model.requests[0]?.messages)).toBe('hello');
  });

  it('continues after an answer that a crash cut off, as if it had not begun', async () => {
    const model = scriptedModel(says('hi'));
    const cutOff = aMessage(
      'assistant',
      'a1',
      { type: 'text', data: { text: 'he' } },
      { type: 'finish', data: { reason: 'interrupted', time: 0 } },
    );
    const context = aContext([], [hello, cutOff]);
    const { messages } = await play(agentLoopContinue(context, aConfig({ model }), noSignal()));
    expect(messages.map(({ parts }) => textOf(parts))).toEqual(['hi']);
    expect(model.requests[0]?.messages).toHaveLength(1);
  });

  it('refuses to continue after a complete answer', () => {
    const answer = aMessage(
      'assistant',
      'a1',
      { type: 'text', data: { text: 'hi' } },
      { type: 'finish', data: { reason: 'end_turn', time: 0 } },
    );
    const go = () => agentLoopContinue(aContext([], [hello, answer]), aConfig(), noSignal());
    expect(go).toThrow(ParleyError);
    expect(() => agentLoopContinue(aContext(), aConfig(), noSignal())).toThrow(ParleyError);
  });

  it('sends the visible transcript and the reasoning level in the request', async () => {
    const model = scriptedModel(says('hi'));
    const config = aConfig({
      model,
      maxTokens: 2000,
      reasoning: 'low',
      transformContext: async (all) => all.slice(-1),
    });
    await play(agentLoop([hello], aContext([], [userSays('old', 'long ago')]), config, noSignal()));
    expect(model.requests[0]).toMatchObject({ maxTokens: 2000, reasoning: 'low' });
    expect(lastUserText(model.requests[0]?.messages)).toBe('hello');
  });
});

describe('steering and follow-ups', () => {
  it('takes a steer before the first model call', async () => {
    const model = scriptedModel(says('hi'));
    const getSteeringMessages = inboxOf([userSays('s1', 'steer')]);
    const { events } = await play(
      agentLoop([hello], aContext(), aConfig({ model, getSteeringMessages }), noSignal()),
    );
    expect(lastUserText(model.requests[0]?.messages)).toBe('hello\nsteer');
    expect(only(events, 'message_end').map(({ message }) => message.id)).toEqual(['p1', 's1', 'new-1']);
  });

  it('extends the run by one turn for a steer that arrives while the final text is written', async () => {
    const inbox = liveInbox();
    const model = scriptedModel(says('first'), says('second'));
    const config = aConfig({ model, getSteeringMessages: inbox.poll });
    const { events } = await play(agentLoop([hello], aContext(), config, noSignal()), (event) => {
      if (event.type === 'message_update' && model.requests.length === 1) {
        if (event.event.type === 'content_stop') inbox.arrive(userSays('s1', 'wait'));
      }
    });
    expect(model.requests).toHaveLength(2);
    expect(lastUserText(model.requests[1]?.messages)).toBe('wait');
    expect(only(events, 'turn_end')).toHaveLength(2);
    expect(grammarErrors(events)).toEqual([]);
  });

  it('asks for follow-ups only when the run would end, and runs them', async () => {
    const asked: number[] = [];
    const model = scriptedModel(callsTools({ id: '1', name: 'a' }), says('first'), says('second'));
    const followUps = inboxOf([userSays('f1', 'and then?')]);
    const getFollowUpMessages = () => {
      asked.push(model.requests.length);
      return followUps();
    };
    const config = aConfig({ model, getFollowUpMessages });
    const { events } = await play(agentLoop([hello], aContext([aTool('a')]), config, noSignal()));
    expect(asked).toEqual([2, 3]);
    expect(lastUserText(model.requests[2]?.messages)).toBe('and then?');
    expect(endOf(events).reason).toBe('natural');
  });

  it('leaves messages that arrive during the last allowed turn to the next run', async () => {
    const inbox = liveInbox();
    const limits = { ...aConfig().limits, turns: 2 };
    const model = scriptedModel(
      callsTools({ id: '1', name: 'a' }),
      callsTools({ id: '2', name: 'a', input: { x: 2 } }),
    );
    const config = aConfig({ model, limits, getSteeringMessages: inbox.poll });
    const { events } = await play(agentLoop([hello], aContext([aTool('a')]), config, noSignal()), (event) => {
      if (event.type === 'tool_execution_prepared' && event.call.id === '2')
        inbox.arrive(userSays('s1', 'late'));
    });
    expect(endOf(events).reason).toBe('turn_limit');
    expect(inbox.left().map(({ id }) => id)).toEqual(['s1']);
    expect(grammarErrors(events)).toEqual([]);
  });
});

describe('the end of a run', () => {
  it.each([
    ['aborted', 'canceled'],
    ['timeout', 'timeout'],
    ['idle', 'timeout'],
  ] as const)(
    'keeps the partial answer and answers its cut-off call if the run ends as %s',
    async (reason, finish) => {
      const clock = manualClock();
      const controller = new AbortController();
      const open = writesCall({ id: '1', name: 'a', input: { path: 'x' } }).slice(0, 2);
      const whole = writesCall({ id: '0', name: 'a' });
      const model = scriptedModel(hangsAfter([{ type: 'content_delta', text: 'I will' }, ...whole, ...open]));
      const inbox = liveInbox();
      let ran = 0;
      const tool = aTool('a', { execute: async () => ({ text: `${ran++}` }) });
      const config = aConfig({ model, clock, getSteeringMessages: inbox.poll });
      const { events, messages } = await play(
        agentLoop([hello], aContext([tool]), config, controller.signal),
        (event) => {
          if (
            event.type !== 'message_update' ||
            event.event.type !== 'tool_use_delta' ||
            event.event.id !== '1'
          )
            return;
          inbox.arrive(userSays('s1', 'steer'));
          setImmediate(() => {
            if (reason === 'aborted') controller.abort();
            else clock.advance(reason === 'timeout' ? 600_000 : 120_000);
          });
        },
      );
      expect(endOf(events).reason).toBe(reason);
      const answer = messages[1];
      expect(textOf(answer?.parts ?? [])).toBe('I will');
      expect(finishReasonOf(answer?.parts ?? [])).toBe(finish);
      expect(answer?.parts).toContainEqual({
        type: 'tool_call',
        data: { id: '1', name: 'a', input: '{"path', finished: false },
      });
      expect(resultsOf(messages).map((result) => result.replace(/cancelled.*/, 'cancelled'))).toEqual([
        '0: cancelled',
        '1: cancelled',
      ]);
      expect(ran).toBe(0);
      expect(inbox.left()).toHaveLength(1);
      expect(grammarErrors(events)).toEqual([]);
      expect(clock.waiting()).toBe(0);
    },
  );

  it("ends with the provider's failure, runs no tool and leaves the queue alone", async () => {
    const inbox = liveInbox();
    const failure = { kind: 'overloaded', detail: '529' } as const;
    const model = scriptedModel([...writesCall({ id: '1', name: 'a' }), { type: 'error', failure }]);
    const config = aConfig({ model, getSteeringMessages: inbox.poll });
    const { events, messages } = await play(
      agentLoop([hello], aContext([aTool('a')]), config, noSignal()),
      (event) => {
        if (event.type === 'message_update') inbox.arrive(userSays('s1', 'x'));
      },
    );
    expect(endOf(events)).toMatchObject({ reason: 'model_error', detail: 'overloaded: 529' });
    expect(only(events, 'message_update').at(-1)?.event).toEqual({ type: 'error', failure });
    expect(only(events, 'tool_execution_prepared')).toEqual([]);
    expect(resultsOf(messages)).toEqual(["1: not run: the model's answer broke off"]);
    expect(inbox.left().length).toBeGreaterThan(0);
    expect(grammarErrors(events)).toEqual([]);
  });

  const broken: readonly (readonly [string, Play])[] = [
    ['stops without an end', [{ type: 'content_delta', text: 'half' }]],
    [
      'throws',
      () => {
        throw new Error('no stream');
      },
    ],
    [
      'rejects while it is read',
      async function* () {
        yield { type: 'content_delta', text: 'half' };
        throw new Error('cut');
      },
    ],
    ['finishes with an error', [completes('error')]],
  ];
  it.each(broken)('ends as a model error if the stream %s', async (_how, script) => {
    const model = scriptedModel(script);
    const { events } = await play(agentLoop([hello], aContext(), aConfig({ model }), noSignal()));
    expect(endOf(events).reason).toBe('model_error');
    expect(grammarErrors(events)).toEqual([]);
  });

  it("doesn't count the announced wait of a retry as idle time", async () => {
    const clock = manualClock();
    const model = scriptedModel(async function* (_request, signal) {
      yield { type: 'warning', kind: 'retrying', detail: '529', waitMs: 60_000 };
      await clock.wait(170_000, signal);
      if (signal.aborted) return;
      yield { type: 'content_delta', text: 'back' };
      yield completes('end_turn');
    });
    const run = play(agentLoop([hello], aContext(), aConfig({ model, clock }), noSignal()), (event) => {
      if (event.type === 'message_update' && event.event.type === 'warning') {
        setImmediate(() => {
          clock.advance(130_000);
          setImmediate(() => clock.advance(40_000));
        });
      }
    });
    expect(endOf((await run).events).reason).toBe('natural');
  });

  it("doesn't count its consumer's time as the model's idle time", async () => {
    const clock = manualClock();
    const model = scriptedModel(says('hi'));
    const { events } = await play(
      agentLoop([hello], aContext(), aConfig({ model, clock }), noSignal()),
      async (event) => {
        if (event.type !== 'message_update' || event.event.type !== 'content_delta') return;
        clock.advance(200_000);
        await new Promise((resolve) => setImmediate(resolve));
      },
    );
    expect(endOf(events).reason).toBe('natural');
  });

  it('ends at the turn limit with every call answered', async () => {
    const limits = { ...aConfig().limits, turns: 3 };
    const scripts = [1, 2, 3, 4].map((x) => callsTools({ id: `c${x}`, name: 'a', input: { x } }));
    const model = scriptedModel(...scripts);
    const { events, messages } = await play(
      agentLoop([hello], aContext([aTool('a')]), aConfig({ model, limits }), noSignal()),
    );
    expect(endOf(events).reason).toBe('turn_limit');
    expect(model.requests).toHaveLength(3);
    expect(resultsOf(messages)).toHaveLength(3);
  });

  it('ends naturally if the answer comes in the last allowed turn', async () => {
    const limits = { ...aConfig().limits, turns: 1 };
    const { events } = await play(agentLoop([hello], aContext(), aConfig({ limits }), noSignal()));
    expect(endOf(events).reason).toBe('natural');
  });

  it('stops a model that repeats one identical call, whatever the order of its arguments', async () => {
    let ran = 0;
    const tool = aTool('a', { execute: async () => ({ text: `${++ran}` }) });
    const inputs = ['{"x":1,"y":2}', '{ "y": 2, "x": 1 }', '{"x":1,"y":2}', '{"x":1,"y":2}'];
    const model = scriptedModel(
      ...inputs.map((input, i) =>
        callsTools({ id: `c${i}`, name: 'a', input }, { id: `d${i}`, name: 'a', input }),
      ),
    );
    const { events, messages } = await play(
      agentLoop([hello], aContext([tool]), aConfig({ model }), noSignal()),
    );
    expect(endOf(events).reason).toBe('loop_guard');
    expect(ran).toBe(3);
    expect(resultsOf(messages)).toHaveLength(4);
    expect(grammarErrors(events)).toEqual([]);
  });

  it('lets a call repeat with other calls in between', async () => {
    const names = ['a', 'b', 'a', 'b', 'a', 'b', 'a', 'b'];
    const model = scriptedModel(...names.map((name, i) => callsTools({ id: `c${i}`, name })));
    const tools = [aTool('a'), aTool('b')];
    const { events } = await play(agentLoop([hello], aContext(tools), aConfig({ model }), noSignal()));
    expect(endOf(events).reason).toBe('natural');
  });

  it('emits its prompts and ends if it was aborted before it began', async () => {
    const model = scriptedModel();
    const { events, messages } = await play(
      agentLoop([hello], aContext(), aConfig({ model }), AbortSignal.abort()),
    );
    expect(endOf(events).reason).toBe('aborted');
    expect(messages).toEqual([hello]);
    expect(model.requests).toHaveLength(0);
    expect(grammarErrors(events)).toEqual([]);
  });

  it.each([
    ['end_turn', 'tool_use'],
    ['tool_use', 'tool_use'],
  ] as const)('judges by the calls of an answer if the provider says %s', async (said, finish) => {
    const model = scriptedModel(
      [...writesCall({ id: '1', name: 'a' }), completes(said)],
      [completes('tool_use')],
    );
    const { events } = await play(agentLoop([hello], aContext([aTool('a')]), aConfig({ model }), noSignal()));
    expect(only(events, 'turn_end').map(({ message }) => finishReasonOf(message.parts))).toEqual([
      finish,
      'end_turn',
    ]);
  });

  it('keeps call ids unique within a session even if the provider reuses them', async () => {
    const model = scriptedModel(
      callsTools({ id: 'call_0', name: 'a' }),
      callsTools({ id: 'call_0', name: 'b' }),
    );
    const { messages } = await play(
      agentLoop([hello], aContext([aTool('a'), aTool('b')]), aConfig({ model }), noSignal()),
    );
    expect(resultsOf(messages)).toEqual(['call_0: a ran', 'call_0_2: b ran']);
  });
});

describe('faults inside the loop', () => {
  const boom = async (): Promise<never> => {
    throw new ParleyError('stale_epoch', 'the lane moved on');
  };
  it.each([
    ['steering', { getSteeringMessages: boom }],
    ['the follow-up source', { getFollowUpMessages: boom }],
    ['the conversion', { convertToLlm: boom }],
    ['the view of the context', { transformContext: boom }],
    ['middleware before a turn', { middleware: [{ beforeTurn: boom }] }],
    ['middleware after a turn', { middleware: [{ afterTurn: boom }] }],
  ] as const)('emits agent_end once and last if %s throws', async (_what, changes) => {
    const model = scriptedModel(callsTools({ id: '1', name: 'a' }));
    const { events } = await play(
      agentLoop([hello], aContext([aTool('a')]), aConfig({ model, ...changes }), noSignal()),
    );
    expect(endOf(events)).toMatchObject({ reason: 'failed', detail: 'stale_epoch: the lane moved on' });
    expect(grammarErrors(events)).toEqual([]);
  });

  it('answers the whole batch if steering throws between two tools', async () => {
    let polls = 0;
    const getSteeringMessages = async () => {
      polls += 1;
      return polls === 2 ? boom() : [];
    };
    const model = scriptedModel(callsTools({ id: '1', name: 'a' }, { id: '2', name: 'a', input: { x: 1 } }));
    const { events, messages } = await play(
      agentLoop([hello], aContext([aTool('a')]), aConfig({ model, getSteeringMessages }), noSignal()),
    );
    expect(endOf(events).reason).toBe('failed');
    expect(resultsOf(messages)).toEqual(['1: a ran', '2: cancelled']);
    expect(grammarErrors(events)).toEqual([]);
  });
});

describe('a consumer that stops early', () => {
  it('closes the model stream and its timer when the consumer stops early', async () => {
    const clock = manualClock();
    let isClosed = false;
    const model = scriptedModel(async function* () {
      try {
        yield { type: 'content_delta', text: 'a' };
        yield { type: 'content_delta', text: 'b' };
      } finally {
        isClosed = true;
      }
    });
    for await (const event of agentLoop([hello], aContext(), aConfig({ model, clock }), noSignal())) {
      if (event.type === 'message_update') break;
    }
    expect(clock.waiting()).toBe(0);
    await expect.poll(() => isClosed).toBe(true);
  });

  it('aborts the running tools when the consumer stops early', async () => {
    let seen: AbortSignal | undefined;
    const tool = aTool('a', {
      execute: (_input, ctx) => {
        seen = ctx.signal;
        ctx.update('working');
        return new Promise(() => undefined);
      },
    });
    const model = scriptedModel(callsTools({ id: '1', name: 'a' }));
    for await (const event of agentLoop([hello], aContext([tool]), aConfig({ model }), noSignal())) {
      if (event.type === 'tool_execution_update') break;
    }
    expect(seen?.aborted).toBe(true);
  });

  it("removes its listener from the caller's signal", async () => {
    const controller = new AbortController();
    let listeners = 0;
    const { signal } = controller;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...args);
    };
    await play(agentLoop([hello], aContext(), aConfig(), signal));
    expect(listeners).toBe(0);
  });
});
