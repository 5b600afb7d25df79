import { setTimeout as delay } from 'node:timers/promises';
import { ParleyError } from '#contracts/errors.ts';

/** Rejects when the answer takes longer: a database that does not even refuse is away too. */
export async function withinPatience<T>(answer: Promise<T>, patienceMs: number): Promise<T> {
  const answered = new AbortController();
  const silence = delay(patienceMs, undefined, { signal: answered.signal }).then(() => {
    throw new ParleyError('store_unavailable', "The database isn't responding.", {
      retry: { kind: 'later' },
    });
  });
  // It is aborted once the answer is there.
  silence.catch(() => undefined);
  try {
    return await Promise.race([answer, silence]);
  } finally {
    answered.abort();
  }
}
