import { describe, expect, it } from 'vitest';
import { agentLoop } from '../../src/agent/loop.ts';
import type { TurnState } from '../../src/agent/loop-config.ts';
import { aConfig, aContext, aTool, inboxOf, userSays } from './support/builders.ts';
import { grammarErrors } from './support/event-grammar.ts';
import { endOf, hello, lastUserText, noSignal, play } from './support/run-loop.ts';
import { callsTools, says, scriptedModel, someUsage } from './support/scripted-model.ts';

const boom = async (): Promise<never> => {
  throw new Error('no');
};

describe('middleware', () => {
  const summary = userSays('sum', 'summary');
  const tooLong = { kind: 'compact', oldTokens: 9, threshold: 5 } as const;

  it.each([
    ['before', 'beforeTurn', 0],
    ['after', 'afterTurn', 1],
  ] as const)(
    'ends the run with the reason if middleware says stop %s a turn',
    async (_when, name, calls) => {
      const model = scriptedModel(callsTools({ id: '1', name: 'a' }), says('never asked'));
      const middleware = [{ [name]: async () => ({ kind: 'stop', detail: 'budget spent' }) as const }];
      const config = aConfig({ model, middleware });
      const { events } = await play(agentLoop([hello], aContext([aTool('a')]), config, noSignal()));
      expect(endOf(events)).toMatchObject({ reason: 'stopped', detail: 'budget spent' });
      expect(model.requests).toHaveLength(calls);
      expect(grammarErrors(events)).toEqual([]);
    },
  );

  it('continues with the reloaded context after a compaction and counts no message twice', async () => {
    const model = scriptedModel(says('hi'));
    const reasons: string[] = [];
    const config = aConfig({
      model,
      middleware: [{ beforeTurn: async () => tooLong }],
      compact: async (reason) => {
        reasons.push(reason);
        return 'compacted';
      },
      reloadMessages: async () => [summary, hello],
    });
    const context = aContext([], [userSays('old', 'old')]);
    const { events, messages } = await play(agentLoop([hello], context, config, noSignal()));
    expect(lastUserText(model.requests[0]?.messages)).toBe('summary\nhello');
    expect(reasons).toEqual(['threshold']);
    expect(events).toContainEqual({ type: 'compaction_start', oldTokens: 9, threshold: 5 });
    expect(events).toContainEqual({ type: 'compaction_end', isDone: true });
    expect(messages.map(({ id }) => id)).toEqual(['p1', 'new-1']);
    expect(grammarErrors(events)).toEqual([]);
  });

  it('compacts before the next turn if requested after one', async () => {
    const model = scriptedModel(callsTools({ id: '1', name: 'a' }), says('ok'));
    const afterTurn = async ({ turn }: { turn: number }) =>
      turn === 1 ? tooLong : ({ kind: 'continue' } as const);
    const config = aConfig({
      model,
      middleware: [{ afterTurn }],
      compact: async () => 'compacted',
      reloadMessages: async () => [summary],
    });
    const { events } = await play(agentLoop([hello], aContext([aTool('a')]), config, noSignal()));
    expect(model.requests.map(({ messages }) => messages.length)).toEqual([1, 1]);
    expect(lastUserText(model.requests[1]?.messages)).toBe('summary');
    expect(events.filter(({ type }) => type === 'compaction_start')).toHaveLength(1);
  });

  it.each([
    ['throws', boom],
    ['fails', async () => 'failed' as const],
  ])('ends as compaction_failed if the compaction %s', async (_how, compact) => {
    const middleware = [{ beforeTurn: async () => tooLong }];
    const config = aConfig({ middleware, compact, reloadMessages: async () => [summary] });
    const { events } = await play(agentLoop([hello], aContext(), config, noSignal()));
    expect(endOf(events).reason).toBe('compaction_failed');
    expect(events).toContainEqual({ type: 'compaction_end', isDone: false });
  });

  it('compacts once if the provider reports an overflow, and asks again in the same turn', async () => {
    const overflow = [{ type: 'error', failure: { kind: 'overflow', detail: 'too long' } }] as const;
    const reasons: string[] = [];
    const model = scriptedModel(overflow, overflow, says('never asked'));
    const compact = async (reason: string) => {
      reasons.push(reason);
      return 'compacted' as const;
    };
    const config = aConfig({ model, compact, reloadMessages: async () => [summary] });
    const { events } = await play(agentLoop([hello], aContext(), config, noSignal()));
    expect(reasons).toEqual(['overflow']);
    expect(model.requests.map(({ messages }) => lastUserText(messages))).toEqual(['hello', 'summary']);
    expect(endOf(events)).toMatchObject({ reason: 'model_error' });
    expect(grammarErrors(events)).toEqual([]);
  });

  it('emits a steer that was taken before a turn that never came', async () => {
    const beforeTurn = async ({ turn }: { turn: number }) =>
      turn === 2 ? ({ kind: 'stop', detail: '' } as const) : ({ kind: 'continue' } as const);
    const getSteeringMessages = inboxOf([], [userSays('s1', 'late')]);
    const config = aConfig({ middleware: [{ beforeTurn }], getSteeringMessages });
    const { messages } = await play(agentLoop([hello], aContext(), config, noSignal()));
    expect(messages.at(-1)?.id).toBe('s1');
  });

  it('shows middleware the turn with its results and the size that the last call counted', async () => {
    const seen: (readonly [number, number])[] = [];
    const look = async ({ messages, stats }: TurnState) => {
      seen.push([messages.length, stats.contextTokens]);
      return { kind: 'continue' } as const;
    };
    const model = scriptedModel(callsTools({ id: '1', name: 'a' }), says('ok'));
    const config = aConfig({ model, middleware: [{ beforeTurn: look, afterTurn: look }] });
    await play(agentLoop([hello], aContext([aTool('a')]), config, noSignal()));
    const call = someUsage.inputTokens + someUsage.outputTokens;
    expect(seen.map(([length]) => length)).toEqual([1, 3, 3, 4]);
    expect(seen.at(-1)?.[1]).toBe(call);
    expect(seen[1]?.[1]).toBeGreaterThan(call);
  });
});
