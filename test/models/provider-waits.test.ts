import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createAnthropicProvider } from '../../src/models/anthropic.ts';
import { createProviderWaits } from '../../src/models/provider-waits.ts';
import { withRetry } from '../../src/models/retry.ts';
import { manualClock } from '../agent/support/manual-clock.ts';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import { patienceMs } from '../support/patience.ts';
import { aRequest, eventsOf, textIn } from './builders.ts';

let server: AnthropicServer;
beforeAll(async () => {
  server = await startAnthropicServer();
});
afterAll(() => server.close());

const patient = { timeout: patienceMs, interval: 5 };
const never = new AbortController().signal;

/** Returns a model behind one provider, on a clock that only moves when it is advanced. */
function aModel() {
  const clock = manualClock();
  const random = () => 0;
  const waits = createProviderWaits({ clock, random });
  const provider = createAnthropicProvider({
    model: 'claude-sonnet-5-5',
    apiKeys: ['test-key'],
    baseUrl: server.url,
  });
  const model = withRetry(provider, { clock, random, waitsOf: () => waits });
  const from = server.requests.length;
  const requests = () => server.requests.length - from;
  const untilWaiting = (count: number) =>
    vi.waitFor(() => expect(waits.waiting().count).toBe(count), patient);
  return { clock, waits, model, requests, untilWaiting };
}

describe('waits for a provider', () => {
  it('wakes all waiting calls after one success, before their time is up', async () => {
    const { clock, waits, model, requests, untilWaiting } = aModel();
    server.script(Array(12).fill({ status: 529 }));
    const calls = Array.from({ length: 12 }, () => eventsOf(model));
    await untilWaiting(12);
    const began = clock.now();
    server.script(() => ({ text: 'back' }));
    await eventsOf(model);
    // They are spread over 0 ms here, so advancing the clock by nothing lets them start.
    await vi.waitFor(() => {
      clock.advance(0);
      expect(waits.waiting()).toEqual({ count: 0, since: undefined });
    }, patient);
    expect((await Promise.all(calls)).map(textIn)).toEqual(Array(12).fill('back'));
    expect({ requests: requests(), passed: clock.now() - began }).toEqual({ requests: 25, passed: 0 });
  });

  it('wakes a few calls per success, longest waiting first and spread over a moment', async () => {
    const clock = manualClock();
    const waits = createProviderWaits({ clock, random: () => 0.5 });
    const woken: number[] = [];
    for (let number = 0; number < 200; number++) {
      void waits.wait({ ms: 60_000, canBeWoken: true }, never).then(() => woken.push(number));
      clock.advance(1);
    }
    expect(waits.waiting()).toEqual({ count: 200, since: clock.now() - 200 });
    waits.succeeded();
    await vi.waitFor(() => expect(clock.waiting()).toBe(200), patient);
    expect(woken).toEqual([]);
    clock.advance(250);
    await vi.waitFor(() => expect(woken).toHaveLength(4), patient);
    expect(woken).toEqual([0, 1, 2, 3]);
    expect(waits.waiting().count).toBe(196);
  });

  it('does not wake a call again right after it was woken and failed', async () => {
    const { clock, waits, model, requests, untilWaiting } = aModel();
    server.script([{ status: 529 }]);
    const call = eventsOf(model);
    await untilWaiting(1);
    server.script([{ text: 'lucky' }, { status: 529 }, { text: 'lucky' }, { text: 'at last' }]);
    await eventsOf(model);
    await vi.waitFor(() => {
      clock.advance(0);
      expect(requests()).toBe(3);
    }, patient);
    await untilWaiting(1);
    await eventsOf(model);
    clock.advance(3_999);
    expect(waits.waiting().count).toBe(1);
    clock.advance(1);
    expect(textIn(await call)).toBe('at last');
  });

  it('does not wake a call early that waits for its own limit', async () => {
    const { clock, model, untilWaiting, waits } = aModel();
    server.script([{ status: 429, retryAfter: 20 }, { text: 'another' }, { text: 'mine' }]);
    const call = eventsOf(model);
    await untilWaiting(1);
    await eventsOf(model);
    clock.advance(19_999);
    expect(waits.waiting().count).toBe(1);
    clock.advance(1);
    expect(textIn(await call)).toBe('mine');
  });

  it('ends a wait at once when its call is aborted', async () => {
    const { model, untilWaiting, waits } = aModel();
    server.script([{ status: 529 }]);
    const abort = new AbortController();
    const call = eventsOf(model, aRequest(), abort.signal);
    await untilWaiting(1);
    abort.abort();
    expect((await call).at(-1)).toMatchObject({ type: 'error', failure: { kind: 'aborted' } });
    expect(waits.waiting().count).toBe(0);
  });
});
