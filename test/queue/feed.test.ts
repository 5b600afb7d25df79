import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FeedEvent } from '../../src/contracts/feed.ts';
import { noProbe } from '../../src/contracts/probe.ts';
import { createEffectDispatcher } from '../../src/queue/effect-dispatcher.ts';
import { createFeed, type Feed } from '../../src/queue/feed.ts';
import type { LiveEvent } from '../../src/queue/live-events.ts';
import { noEffects } from '../../src/store/base/effects.ts';
import { silentLog } from '../support/silent-log.ts';
import { aFeed } from '../support/some-feed.ts';
import { createSteppedClock } from '../support/stepped-clock.ts';

const piece = (at: number): FeedEvent => ({ kind: 'text', runId: 'r', of: 'assistant', at, text: 'a' });
const textOf = (at: unknown) => ({ value: expect.objectContaining({ at }) });

describe('a subscription', () => {
  it('keeps the order, and counts exactly what did not fit', async () => {
    // In each round, the first number of events is published, then the consumer reads the second number.
    const rounds = fc.array(fc.tuple(fc.nat(9), fc.nat(9)), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(rounds, fc.integer({ min: 1, max: 5 }), async (plays, capacity) => {
        const feed = aFeed({ capacity });
        const over = new AbortController();
        const stream = feed.subscribe('a', over.signal);
        let published = 0;
        let accounted = 0;
        const read = async () => {
          const { value } = await stream.next();
          if (value !== undefined && 'lagged' in value) accounted += value.lagged;
          else expect(value).toEqual(piece(accounted++));
        };
        for (const [publishes, reads] of plays) {
          for (let count = 0; count < publishes; count += 1) feed.publish('a', piece(published++));
          for (let count = 0; count < reads && accounted < published; count += 1) await read();
        }
        while (accounted < published) await read();
        over.abort();
        expect(await stream.next()).toEqual({ done: true, value: undefined });
        expect(feed.isFollowed('a')).toBe(false);
      }),
      { numRuns: 100 },
    );
  });

  it('holds 64 events for each subscriber, and none for one who has gone', async () => {
    const feed = aFeed();
    const stream = feed.subscribe('a', new AbortController().signal);
    for (let count = 0; count < 70; count += 1) feed.publish('a', piece(count));
    for (let count = 0; count < 64; count += 1) expect(await stream.next()).toMatchObject(textOf(count));
    expect((await stream.next()).value).toEqual({ lagged: 6 });
    await stream.return?.();
    expect(feed.isFollowed('a')).toBe(false);
  });
});

it('tells the end of a run whose process has died, once', async () => {
  const feed = aFeed();
  const motion = createEffectDispatcher(noProbe);
  const nothing = () => undefined;
  motion.connect({
    ...{ cancel: nothing, wake: nothing, deliver: nothing, fetch: nothing, changed: nothing },
    ...{ overflowed: nothing, reserve: nothing, gaveUp: feed.gaveUp },
    ...{ childEnded: nothing, sessionEnded: nothing, taskChanged: nothing },
  });
  const stream = feed.subscribe('a', new AbortController().signal);
  motion.dispatch({ ...noEffects(), gaveUp: [{ laneKey: 'a', runId: 'r', reason: 'gave_up' }] });
  feed.publish('a', piece(0));
  const told = [(await stream.next()).value, (await stream.next()).value];
  expect(told).toEqual([{ kind: 'run', runId: 'r', state: 'ended', reason: 'gave_up' }, piece(0)]);
});

/** Two processes of one database, and what they send each other. */
function twoProcesses() {
  const clock = createSteppedClock();
  const sent: LiveEvent[] = [];
  const feeds: Feed[] = [0, 1].map((index) =>
    createFeed({
      ...{ clock, log: silentLog },
      live: {
        publish: (said) => {
          sent.push(said);
          const other = feeds[1 - index];
          if (said.kind === 'follow') other?.follow(said.laneKey);
          if (said.kind === 'timeline') other?.hear(said.laneKey, said.event);
        },
      },
    }),
  );
  const [here, there] = feeds as [Feed, Feed];
  return { clock, sent, here, there };
}

describe('the feed between processes', () => {
  it('carries text to processes that follow the lane, and to no other', async () => {
    const { clock, sent, here, there } = twoProcesses();
    const over = new AbortController();
    const stream = here.subscribe('a', over.signal);
    there.publish('b', piece(0));
    there.publish('a', piece(0));
    there.publish('a', piece(1));
    expect(await stream.next()).toMatchObject(textOf(0));
    expect(await stream.next()).toMatchObject(textOf(1));
    await clock.advance(60_000);
    expect(there.isFollowed('a')).toBe(true);
    over.abort();
    await clock.advance(60_000);
    expect(there.isFollowed('a')).toBe(false);
    there.publish('a', piece(2));
    expect(sent.filter(({ kind }) => kind === 'timeline')).toHaveLength(2);
  });

  it('carries to every process what clients show, and shows them nothing else', () => {
    const { here, there } = twoProcesses();
    const shown: FeedEvent[] = [];
    here.watch('a', (event) => shown.push(event), new AbortController().signal);
    const output: FeedEvent = { kind: 'output', runId: 'r', callId: 'c', text: 'so far' };
    const forPrograms: readonly FeedEvent[] = [piece(0), { kind: 'answer', runId: 'r', text: 'done' }];
    there.publish('a', output);
    for (const event of forPrograms) here.publish('a', event);
    here.publish('b', output);
    expect(shown).toEqual([output]);
  });

  it('tells a conversation that the state of a sub-agent has changed, at every depth, and nothing it does', () => {
    const { sent, here } = twoProcesses();
    const top = 'main:bot:test:dm:ann';
    const child = `agent:main:sub:1:abc@${top}`;
    const shown: FeedEvent[] = [];
    here.watch(top, (event) => shown.push(event), new AbortController().signal);
    for (const laneKey of [child, `agent:main:sub:2:def@${child}`]) {
      here.publish(laneKey, { kind: 'run', runId: 'r', state: 'ended' });
      here.publish(laneKey, { kind: 'output', runId: 'r', callId: 'c', text: 'a secret of the child' });
      here.publish(laneKey, { kind: 'tool', runId: 'r', callId: 'c', name: 'glob', state: 'started' });
    }
    expect(shown).toEqual([{ kind: 'changed' }, { kind: 'changed' }]);
    sent.length = 0;
    here.publish(top, { kind: 'run', runId: 'r', state: 'ended' });
    expect(sent).toHaveLength(1);
  });
});
