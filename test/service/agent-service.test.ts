import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { noProbe } from '../../src/contracts/probe.ts';
import { createAgentService } from '../../src/service/agent-service.ts';
import { openOwnStore } from '../runs/own-store.ts';
import { aLane, aWorker, unique } from '../store/builders.ts';

describe('the agent service', () => {
  const store = openOwnStore();

  const aService = () => {
    const lane = aLane(unique('c'));
    const listeners = new Set<() => void>();
    const waits: number[] = [];
    const service = createAgentService({
      store: store(),
      // No time passes: only what it hears ends a wait.
      clock: {
        now: () => 1,
        wait: (ms, signal) => {
          waits.push(ms);
          return new Promise((resolve) => signal?.addEventListener('abort', () => resolve()));
        },
      },
      probe: noProbe,
      ownerLane: () => lane,
      start: () => undefined,
      reserve: () => undefined,
      watch: (laneKey, onChange, signal) => {
        expect(laneKey).toBe(lane.key);
        listeners.add(onChange);
        signal.addEventListener('abort', () => listeners.delete(onChange));
      },
    });
    const tell = () => {
      for (const listener of listeners) listener();
    };
    return { service, lane, listeners, tell, waits };
  };

  it('hears that a run has ended, and looks seldom beside that', async () => {
    const { service, lane, listeners, tell, waits } = aService();
    const { runId } = await service.send({ message: 'hello' });
    const signal = new AbortController().signal;
    const result = service.wait(runId, 30_000, signal);
    while (waits.length === 0) await setImmediate();
    tell();
    while (waits.length === 1) await setImmediate();
    const worker = aWorker(store());
    await worker.answer(await worker.claimRun(lane.key), 'Here I am.', { parts: [] });
    tell();
    expect(await result).toMatchObject({ kind: 'ended', outcome: 'answered', text: 'Here I am.' });
    expect(waits).toEqual([1000, 1000]);
    expect(listeners.size).toBe(0);
  });

  it('stops listening when its caller has gone', async () => {
    const { service, listeners, waits } = aService();
    const { runId } = await service.send({ message: 'hello' });
    const caller = new AbortController();
    const result = service.wait(runId, 30_000, caller.signal);
    while (waits.length === 0) await setImmediate();
    caller.abort();
    expect(await result).toMatchObject({ kind: 'open' });
    expect(listeners.size).toBe(0);
  });

  it('refuses an agent beside a session, which has one', async () => {
    const { service, lane } = aService();
    const sent = service.send({ message: 'hello', session: lane.key, agent: 'other' });
    await expect(sent).rejects.toThrow('Name an agent or a session, not both');
  });
});
