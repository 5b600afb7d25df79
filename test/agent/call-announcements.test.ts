import { describe, expect, it } from 'vitest';
import { agentLoop } from '../../src/agent/loop.ts';
import { aConfig, aContext, aTool } from './support/builders.ts';
import { hello, noSignal, only, play, playBatch } from './support/run-loop.ts';
import { callsTools, says, scriptedModel } from './support/scripted-model.ts';

/** Returns the events of calls as `type id`, without their common prefix. */
function tellsOf(events: Awaited<ReturnType<typeof playBatch>>['events']): readonly string[] {
  return events.flatMap((event) => {
    if (!event.type.startsWith('tool_execution_')) return [];
    const type = event.type.replace('tool_execution_', '');
    if ('call' in event) return [`${type} ${event.call.id}`];
    return 'callId' in event ? [`${type} ${event.callId}`] : [];
  });
}

describe('a batch of calls', () => {
  it('announces a call before it asks its hook and prepares it', async () => {
    const log: string[] = [];
    const config = aConfig({
      model: scriptedModel(callsTools({ id: '1', name: 'a' }), says('done')),
      beforeToolCall: async ({ id }) => {
        log.push(`ask the hook about ${id}`);
        return { kind: 'go' };
      },
    });
    await play(agentLoop([hello], aContext([aTool('a')]), config, noSignal()), (event) => {
      if ('call' in event) log.push(`${event.type} ${event.call.id}`);
    });
    expect(log).toEqual(['tool_execution_start 1', 'ask the hook about 1', 'tool_execution_prepared 1']);
  });

  it('announces calls that never run: unknown, invalid, blocked, denied and cancelled', async () => {
    const tools = [aTool('a'), aTool('denied'), aTool('blocked')];
    const calls = ['nobody', 'a', 'blocked', 'denied', 'a'].map((name, index) => ({ id: `${index}`, name }));
    const broken = calls.map((call) => (call.id === '1' ? { ...call, input: '{' } : call));
    const { events } = await playBatch(tools, broken, {
      toolExecution: 'parallel',
      beforeToolCall: async ({ name }) =>
        name === 'blocked' ? { kind: 'block', reason: 'no' } : { kind: 'go' },
      permit: async ({ call }) => (call.name === 'denied' ? 'denied' : 'allowed'),
    });
    const starts = only(events, 'tool_execution_start').map(({ call }) => call.id);
    expect(starts).toEqual(['0', '1', '2', '3', '4']);
    expect(only(events, 'tool_execution_prepared')).toEqual([]);
    expect(only(events, 'tool_execution_end')).toHaveLength(5);
  });

  it('announces all calls of a parallel batch before any runs, and those of a sequential batch one by one', async () => {
    const calls = ['1', '2'].map((id) => ({ id, name: 'a' }));
    const parallel = await playBatch([aTool('a')], calls, { toolExecution: 'parallel' });
    expect(tellsOf(parallel.events).slice(0, 4)).toEqual(['start 1', 'start 2', 'prepared 1', 'prepared 2']);
    const sequential = await playBatch([aTool('a')], calls, { toolExecution: 'sequential' });
    const one = (id: string) => [`start ${id}`, `prepared ${id}`, `end ${id}`];
    expect(tellsOf(sequential.events)).toEqual([...one('1'), ...one('2')]);
  });
});
