import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AgentStreamEvent } from '../../src/contracts/agent-stream.ts';
import { noProbe } from '../../src/contracts/probe.ts';
import { createEffectDispatcher } from '../../src/queue/effect-dispatcher.ts';
import type { LiveEvent } from '../../src/queue/live-events.ts';
import { type AgentStreams, createAgentStreams } from '../../src/service/agent-streams.ts';
import { createBroker } from '../../src/service/broker.ts';
import { noEffects } from '../../src/store/base/effects.ts';
import { createSteppedClock } from '../support/stepped-clock.ts';

describe('the broker', () => {
  it("keeps the order and counts exactly the events that didn't fit", async () => {
    // In each round, the first number of events is published, then the consumer reads the second number.
    const rounds = fc.array(fc.tuple(fc.nat(9), fc.nat(9)), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(rounds, fc.integer({ min: 1, max: 5 }), async (plays, capacity) => {
        const broker = createBroker<number>(capacity);
        const over = new AbortController();
        const stream = broker.subscribe('a', over.signal);
        let published = 0;
        let accounted = 0;
        const read = async () => {
          const { value } = await stream.next();
          if (typeof value === 'object') accounted += value.lagged;
          else expect(value).toBe(accounted++);
        };
        for (const [publishes, reads] of plays) {
          for (let count = 0; count < publishes; count += 1) broker.publish('a', published++);
          for (let count = 0; count < reads && accounted < published; count += 1) await read();
        }
        while (accounted < published) await read();
        over.abort();
        expect(await stream.next()).toEqual({ done: true, value: undefined });
        expect(broker.isHeard('a')).toBe(false);
      }),
      { numRuns: 100 },
    );
  });

  it('holds 64 events for each subscriber, and none for one that has gone', async () => {
    const broker = createBroker<number>();
    const stream = broker.subscribe('a', new AbortController().signal);
    for (let count = 0; count < 70; count += 1) broker.publish('a', count);
    for (let count = 0; count < 64; count += 1) expect((await stream.next()).value).toBe(count);
    expect((await stream.next()).value).toEqual({ lagged: 6 });
    await stream.return?.();
    expect(broker.isHeard('a')).toBe(false);
  });
});

describe('streams between processes', () => {
  const event: AgentStreamEvent = { stream: 'assistant', runId: 'r', delta: 'a' };

  it('streams the end of a run whose process has died, once', async () => {
    const clock = createSteppedClock();
    const streams = createAgentStreams({ clock, live: { publish: () => undefined } });
    const motion = createEffectDispatcher(noProbe);
    const nothing = () => undefined;
    motion.connect({
      ...{ cancel: nothing, wake: nothing, deliver: nothing, fetch: nothing, changed: nothing },
      ...{ overflowed: nothing, reserve: nothing, gaveUp: streams.gaveUp },
    });
    const over = new AbortController();
    const stream = streams.subscribe('a', over.signal);
    motion.dispatch({ ...noEffects(), gaveUp: [{ laneKey: 'a', runId: 'r', reason: 'gave_up' }] });
    streams.publish('a', () => [event]);
    const told = [(await stream.next()).value, (await stream.next()).value];
    expect(told).toEqual([{ stream: 'lifecycle', runId: 'r', phase: 'error', reason: 'gave_up' }, event]);
    over.abort();
    await clock.advance(60_000);
  });

  it('carries each event to the followers of its session, equal events too, and nothing else', async () => {
    const clock = createSteppedClock();
    const sent: LiveEvent[] = [];
    const processes: AgentStreams[] = [0, 1].map((index) =>
      createAgentStreams({
        clock,
        live: {
          publish: (said) => {
            sent.push(said);
            const other = processes[1 - index];
            if (said.kind === 'follow') other?.follow(said.laneKey);
            if (said.kind === 'stream') other?.hear(said.laneKey, said.event);
          },
        },
      }),
    );
    const [here, there] = processes as [AgentStreams, AgentStreams];
    const over = new AbortController();
    const stream = here.subscribe('a', over.signal);
    there.publish('b', () => {
      throw new Error('nobody follows it');
    });
    there.publish('a', () => [event, event]);
    expect([(await stream.next()).value, (await stream.next()).value]).toEqual([event, event]);
    await clock.advance(60_000);
    there.publish('a', () => [event]);
    expect((await stream.next()).value).toEqual(event);
    expect(new Set(sent.map((said) => JSON.stringify(said))).size).toBe(1 + 3);
    over.abort();
    await clock.advance(60_000);
    there.publish('a', () => {
      throw new Error('nobody follows it any more');
    });
  });
});
