import { describe, expect, it } from 'vitest';
import type { Tool } from '#contracts/tool.ts';
import { aTool, liveInbox, type ToolChanges, userSays } from './support/builders.ts';
import { endOf, only, playBatch } from './support/run-loop.ts';

/** Returns a tool whose calls wait for an outside result. */
function asks(name: string, changes: ToolChanges = {}): Tool {
  const execute = async () => ({ parked: { reason: `an answer to ${name}` } });
  return aTool(name, { replay: 'durable', execute, ...changes });
}

const calls = (...names: readonly string[]) => names.map((name, index) => ({ id: `${index}`, name }));

describe('a call that waits for an outside answer', () => {
  it('ends the run as parked, without a result or another model call', async () => {
    const { events, model, results } = await playBatch([asks('ask')], calls('ask'));
    expect(endOf(events).reason).toBe('parked');
    expect(only(events, 'tool_execution_parked')).toEqual([
      { type: 'tool_execution_parked', callId: '0', name: 'ask', reason: 'an answer to ask' },
    ]);
    expect(results).toEqual([]);
    expect(only(events, 'turn_end')).toEqual([]);
    expect(model.requests).toHaveLength(1);
  });

  it("doesn't start the later calls of a sequential batch", async () => {
    const ran: string[] = [];
    const note = (name: string) => aTool(name, { execute: async () => ({ text: `${ran.push(name)}` }) });
    const { events, results } = await playBatch(
      [note('before'), asks('ask'), note('behind')],
      calls('before', 'ask', 'behind'),
    );
    expect(ran).toEqual(['before']);
    expect(results).toEqual(['0: 1']);
    expect(only(events, 'tool_execution_end').map(({ callId }) => callId)).toEqual(['0']);
  });

  it('lets the other calls of a parallel batch end first, with their results', async () => {
    let finish = () => {};
    const slow = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const parked = asks('ask', {
      parallelSafe: true,
      execute: async () => {
        setImmediate(finish);
        return { parked: { reason: 'an answer' } };
      },
    });
    const other = aTool('other', {
      parallelSafe: true,
      execute: async () => {
        await slow;
        return { text: 'other ran' };
      },
    });
    const { events, results } = await playBatch([parked, other], calls('ask', 'other'));
    expect(results).toEqual(['1: other ran']);
    const types = events.map(({ type }) => type);
    expect(types.indexOf('tool_execution_parked')).toBeGreaterThan(types.indexOf('tool_execution_end'));
    expect(endOf(events).reason).toBe('parked');
  });

  it('emits the messages taken between the tools before the parked call', async () => {
    const inbox = liveInbox();
    const steer = userSays('s1', 'and this');
    const first = aTool('first', {
      execute: async () => {
        inbox.arrive(steer);
        return { text: 'first ran' };
      },
    });
    const changes = { getSteeringMessages: inbox.poll, steerTail: 'finish' as const };
    const { messages } = await playBatch([first, asks('ask')], calls('first', 'ask'), changes);
    expect(messages.map(({ id }) => id)).toContain('s1');
  });

  it('answers a parked call like every other if the run was cut short meanwhile', async () => {
    const stop = new AbortController();
    const parked = asks('ask', {
      execute: async () => {
        stop.abort();
        return { parked: { reason: 'an answer' } };
      },
    });
    const { events, results } = await playBatch([parked], calls('ask'), { signal: stop.signal });
    expect(endOf(events).reason).toBe('aborted');
    expect(only(events, 'tool_execution_parked')).toEqual([]);
    expect(results).toEqual(['0: cancelled by user; it had started, outcome unknown']);
  });

  it('lets only a durable tool park', async () => {
    const { events, results } = await playBatch([asks('ask', { replay: 'never' })], calls('ask'));
    expect(endOf(events).reason).toBe('natural');
    expect(results).toEqual([expect.stringContaining('only a durable tool')]);
  });
});
