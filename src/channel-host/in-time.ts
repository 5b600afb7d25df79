import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';

/**
 * Returns the result of a call into a channel that may never return. After `limitMs` it rejects with
 * `channel_unavailable` and aborts the call's signal.
 */
export async function inTime<T>(
  { clock, limitMs, what }: { readonly clock: Clock; readonly limitMs: number; readonly what: string },
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const tooLate = new AbortController();
  const isDone = new AbortController();
  const limit = clock.wait(limitMs, isDone.signal).then(() => {
    const reason = `${what} took longer than ${Math.round(limitMs / 1000)} s`;
    const fault = new ParleyError('channel_unavailable', reason, { retry: { kind: 'later' } });
    tooLate.abort(fault);
    throw fault;
  });
  try {
    return await Promise.race([call(tooLate.signal), limit]);
  } finally {
    isDone.abort();
  }
}
