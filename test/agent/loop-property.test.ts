// Random scripts of answers, tools, steers and aborts. Whatever happens, every run keeps its guarantees.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AgentEvent } from '#contracts/agent-event.ts';
import { toolCallsOf } from '#contracts/message.ts';
import type { ModelEvent } from '#contracts/model.ts';
import type { Tool } from '#contracts/tool.ts';
import { agentLoop } from '../../src/agent/loop.ts';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { createHooks } from '../../src/hooks/hooks.ts';
import { toolHooksOf } from '../../src/runs/run-hooks.ts';
import { budget, holds } from '../support/holds.ts';
import { silentLog } from '../support/silent-log.ts';
import { aConfig, aContext, aRun, aTool, liveInbox, someLimits, userSays } from './support/builders.ts';
import { grammarErrors } from './support/event-grammar.ts';
import { llmErrors } from './support/llm-grammar.ts';
import { type ManualClock, manualClock } from './support/manual-clock.ts';
import { endOf, only, play, resultsOf } from './support/run-loop.ts';
import { completes, hangsAfter, type Play, scriptedModel, writesCall } from './support/scripted-model.ts';

type ToolPlan = {
  readonly behaviour: 'quick' | 'slow' | 'throws' | 'hangs' | 'obeys' | 'parks';
  readonly isSafe: boolean;
};
/** The hooks of two plugins: one blocks what the plan says, the other only looks. */
function hooksOf({ blocked }: Plan) {
  const hooks = createHooks({ log: silentLog, clock: systemClock });
  hooks.on('before_tool_call', async () => undefined, { owner: 'looks' });
  hooks.on(
    'before_tool_call',
    ({ call: { name } }) =>
      blocked.some((index) => name === `t${index}`) ? { kind: 'block', reason: 'no' } : undefined,
    { owner: 'blocks' },
  );
  return hooks;
}

type TurnPlan = {
  readonly calls: readonly number[];
  readonly end: 'complete' | 'max_tokens' | 'error' | 'silence' | 'cut call';
};
type Plan = {
  readonly turns: readonly TurnPlan[];
  readonly tools: readonly ToolPlan[];
  readonly denied: readonly number[];
  readonly blocked: readonly number[];
  readonly mode: 'auto' | 'sequential' | 'parallel';
  readonly tail: 'skip' | 'finish';
  /** Event counts at which a steer arrives. */
  readonly steersAt: readonly number[];
  readonly abortAt: number | undefined;
  readonly turnLimit: number;
};

const toolCount = 4;
const aToolIndex = fc.integer({ min: 0, max: toolCount });
const plans: fc.Arbitrary<Plan> = fc.record({
  turns: fc.array(
    fc.record({
      calls: fc.array(aToolIndex, { maxLength: 4 }),
      end: fc.oneof(
        { weight: 8, arbitrary: fc.constant('complete' as const) },
        { weight: 2, arbitrary: fc.constantFrom('max_tokens', 'error', 'silence', 'cut call') },
      ),
    }),
    { maxLength: 6 },
  ),
  tools: fc.array(
    fc.record({
      behaviour: fc.oneof(
        { weight: 6, arbitrary: fc.constantFrom('quick' as const, 'slow' as const) },
        { weight: 2, arbitrary: fc.constantFrom('throws', 'hangs', 'obeys', 'parks') },
      ),
      isSafe: fc.boolean(),
    }),
    { minLength: toolCount, maxLength: toolCount },
  ),
  denied: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(aToolIndex, { maxLength: 1 })),
  blocked: fc.array(aToolIndex, { maxLength: 1 }),
  mode: fc.constantFrom('auto', 'sequential', 'parallel'),
  tail: fc.constantFrom('skip', 'finish'),
  steersAt: fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 3 }),
  abortAt: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined, freq: 2 }),
  turnLimit: fc.integer({ min: 1, max: 8 }),
});

const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

function toolOf({ behaviour, isSafe }: ToolPlan, index: number, log: string[]): Tool {
  return aTool(`t${index}`, {
    parallelSafe: isSafe,
    replay: 'durable',
    execute: async (_input, { callId, signal, update }) => {
      log.push(`run ${callId}`);
      update('begun');
      if (behaviour === 'throws') throw new Error('broken');
      if (behaviour === 'hangs') return new Promise(() => undefined);
      if (behaviour === 'obeys') {
        await new Promise<void>((resolve) => {
          if (signal.aborted) resolve();
          signal.addEventListener('abort', () => resolve());
        });
      }
      for (let n = behaviour === 'slow' ? 3 : 0; n > 0; n -= 1) await tick();
      return behaviour === 'parks' ? { parked: { reason: 'an answer' } } : { text: `${callId} ran` };
    },
  });
}

function playOf({ calls, end }: TurnPlan, turn: number): Play {
  const written = calls.flatMap((tool, index) =>
    writesCall({ id: `${turn}.${index}`, name: `t${tool}`, input: { turn, index } }),
  );
  const events: ModelEvent[] = [{ type: 'content_delta', text: `turn ${turn}` }, ...written];
  if (end === 'silence') return hangsAfter(events);
  if (end === 'error') return [...events, { type: 'error', failure: { kind: 'failed', detail: 'x' } }];
  if (end === 'cut call') return [...events.slice(0, -1), completes('end_turn')];
  return [...events, completes(end === 'max_tokens' ? 'max_tokens' : 'tool_use')];
}

/** Advances the clock whenever nothing else happens, so that hanging models and tools reach their limits. */
async function moveClock(clock: ManualClock, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    for (let idle = 0; idle < 8; idle += 1) await tick();
    if (!isOver()) clock.advance(1000 * 30);
  }
}

async function runPlan(plan: Plan) {
  const clock = manualClock();
  const controller = new AbortController();
  const inbox = liveInbox();
  const log: string[] = [];
  const model = scriptedModel(...plan.turns.map(playOf));
  const polls: { readonly requestsSoFar: number; readonly ids: readonly string[] }[] = [];
  const limits = { ...someLimits, turns: plan.turnLimit };
  const config = aConfig({
    model,
    clock,
    limits,
    toolExecution: plan.mode,
    steerTail: plan.tail,
    getSteeringMessages: async () => {
      const taken = await inbox.poll();
      polls.push({ requestsSoFar: model.requests.length, ids: taken.map(({ id }) => id) });
      return taken;
    },
    permit: async ({ call: { id, name } }) => {
      if (!plan.denied.some((index) => name === `t${index}`)) return 'allowed';
      log.push(`denied ${id}`);
      return 'denied';
    },
    ...toolHooksOf(hooksOf(plan), aRun),
  });
  const tools = plan.tools.map((tool, index) => toolOf(tool, index, log));
  let seen = 0;
  const onEvent = async (event: AgentEvent) => {
    seen += 1;
    if (plan.steersAt.includes(seen)) inbox.arrive(userSays(`s${seen}`, `steer ${seen}.`));
    if (plan.abortAt === seen) controller.abort();
    if (event.type === 'message_end' || event.type === 'tool_execution_prepared') {
      await Promise.resolve();
      if (event.type === 'tool_execution_prepared') log.push(`start ${event.call.id}`);
      else if (event.message.role === 'assistant') {
        log.push(...toolCallsOf(event.message.parts).map(({ id }) => `asked ${id}`));
      }
    }
  };
  let isOver = false;
  const running = play(agentLoop([userSays('p', 'go')], aContext(tools), config, controller.signal), onEvent);
  const [played] = await Promise.all([
    running.finally(() => {
      isOver = true;
    }),
    moveClock(clock, () => isOver),
  ]);
  return {
    ...played,
    log,
    model,
    polls,
    inbox,
    clock,
    aborted: plan.abortAt !== undefined && plan.abortAt <= seen,
  };
}

type PlanRun = Awaited<ReturnType<typeof runPlan>>;

const keeps = (check: (run: PlanRun, plan: Plan) => void) =>
  holds(
    fc.asyncProperty(plans, async (plan) => check(await runPlan(plan), plan)),
    budget(20_000),
  );

describe('any run', () => {
  it('keeps the event grammar, with one agent_end and one result per call in source order', () =>
    keeps(({ events, messages, clock }) => {
      expect(grammarErrors(events)).toEqual([]);
      expect(endOf(events).messages).toEqual(messages);
      const calls = messages.flatMap(({ parts }) => toolCallsOf(parts).map(({ id }) => id));
      const parked: readonly string[] = only(events, 'tool_execution_parked').map(({ callId }) => callId);
      expect(endOf(events).reason === 'parked').toBe(parked.length > 0);
      // A parked call, and the calls after it, are left to the resumed run.
      const ended: readonly string[] = only(events, 'tool_execution_end').map(({ callId }) => callId);
      const settled = parked.length === 0 ? calls : calls.filter((id) => ended.includes(id));
      expect(resultsOf(messages).map((result) => result.split(':')[0])).toEqual(settled);
      expect(settled.filter((id) => parked.includes(id))).toEqual([]);
      expect(clock.waiting()).toBe(0);
    }));

  it('runs a tool only after its call and start were handled, and none after a denial in its batch', () =>
    keeps(({ log }) => {
      for (const [index, entry] of log.entries()) {
        const [what, id = ''] = entry.split(' ');
        if (what === 'run') {
          expect(log.slice(0, index)).toContain(`start ${id}`);
          expect(log.slice(0, index)).toContain(`asked ${id}`);
        }
        if (what !== 'denied') continue;
        const turn = id.split('.')[0];
        const later = log.slice(index + 1).filter((next) => next.startsWith('run '));
        expect(later.filter((next) => next.startsWith(`run ${turn}.`))).toEqual([]);
      }
    }));

  it('offers no tools in the request after a denial', () =>
    keeps(({ events, model }) => {
      for (const { message } of only(events, 'turn_end')) {
        const isDenied = message.parts.some(
          (part) => part.type === 'finish' && part.data.reason === 'permission_denied',
        );
        const turn = only(events, 'turn_end').findIndex((end) => end.message === message);
        if (isDenied && model.requests[turn + 1]) expect(model.requests[turn + 1]?.tools).toEqual([]);
      }
    }));

  it('shows every steer in the next request, and takes none if it can make no request', () =>
    keeps(({ polls, model, events, messages }) => {
      for (const { requestsSoFar, ids } of polls) {
        const request = model.requests[requestsSoFar];
        for (const id of ids) {
          expect(messages.map((message) => String(message.id))).toContain(id);
          if (request === undefined) expect(['natural', 'turn_limit']).not.toContain(endOf(events).reason);
          else expect(JSON.stringify(request.messages)).toContain(`steer ${id.slice(1)}.`);
        }
      }
    }));

  it('leaves no steer waiting when it ends naturally before its turn limit', () =>
    keeps(({ events, inbox, aborted, model }, plan) => {
      if (endOf(events).reason !== 'natural' || aborted || model.requests.length >= plan.turnLimit) return;
      // What arrives during the very last events belongs to the next run.
      const lastTurnEnd = events.findLastIndex(({ type }) => type === 'turn_end');
      const early = inbox.left().filter(({ id }) => Number(id.slice(1)) <= lastTurnEnd + 1);
      expect(early).toEqual([]);
    }));

  it('always sends the provider a history that it accepts', () =>
    keeps(({ model }) => {
      for (const { messages } of model.requests) expect(llmErrors(messages)).toEqual([]);
    }));

  it('leaves no timer running a second after its consumer stopped, at any event', () =>
    holds(
      fc.asyncProperty(plans, fc.integer({ min: 1, max: 60 }), async (plan, stopAt) => {
        const clock = manualClock();
        const tools = plan.tools.map((tool, index) => toolOf(tool, index, []));
        const config = aConfig({
          model: scriptedModel(...plan.turns.map(playOf)),
          clock,
          toolExecution: plan.mode,
        });
        let isOver = false;
        const consume = async () => {
          let seen = 0;
          for await (const _ of agentLoop(
            [userSays('p', 'go')],
            aContext(tools),
            config,
            AbortSignal.any([]),
          )) {
            seen += 1;
            if (seen === stopAt) break;
          }
          isOver = true;
        };
        await Promise.all([consume(), moveClock(clock, () => isOver)]);
        // A tool that ignores its signal gets another second before it is abandoned.
        clock.advance(1000);
        await tick();
        expect(clock.waiting()).toBe(0);
      }),
      budget(20_000),
    ));
});
