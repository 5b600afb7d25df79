import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { withLimit } from '#channel-kit/with-limit.ts';

const untilAborted = (signal: AbortSignal) =>
  new Promise<unknown>((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    signal.addEventListener('abort', () => resolve(signal.reason), { once: true });
  });

describe('calls with a limit', () => {
  it('aborts a call with a TimeoutError when its time is up', async () => {
    expect(await withLimit(1, undefined, untilAborted)).toMatchObject({ name: 'TimeoutError' });
  });

  it("aborts a call with the outer signal's reason, even if that was aborted earlier", async () => {
    const outer = new AbortController();
    const called = withLimit(3_600_000, outer.signal, untilAborted);
    outer.abort('stopping');
    expect(await called).toBe('stopping');
    expect(await withLimit(3_600_000, outer.signal, untilAborted)).toBe('stopping');
  });

  it('leaves no timer and no listener behind, however a call ends', async () => {
    const outer = new AbortController();
    const given: AbortSignal[] = [];
    await withLimit(20, outer.signal, async (signal) => given.push(signal));
    const failing = withLimit(20, outer.signal, async (signal) => {
      given.push(signal);
      throw new Error('refused');
    });
    await expect(failing).rejects.toThrow('refused');
    expect(getEventListeners(outer.signal, 'abort')).toEqual([]);
    // A timer set later and for longer fires after both of theirs would have.
    await withLimit(40, undefined, untilAborted);
    expect(given.map(({ aborted }) => aborted)).toEqual([false, false]);
  });
});
