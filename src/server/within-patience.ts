import { setTimeout as delay } from 'node:timers/promises';
import { ParleyError } from '#contracts/errors.ts';

/** Rejects when the answer takes longer, because a database that doesn't even return an error is unreachable too. */
export async function withinPatience<T>(answer: Promise<T>, patienceMs: number): Promise<T> {
  const answered = new AbortController();
  const silence = delay(patienceMs, undefined, { signal: answered.signal }).then(() => {
    throw new ParleyError('store_unavailable', "The database isn't responding.", {
      retry: { kind: 'later' },
    });
  });
  // It is aborted once there is an answer.
  silence.catch(() => undefined);
  try {
    return await Promise.race([answer, silence]);
  } finally {
    answered.abort();
  }
}
