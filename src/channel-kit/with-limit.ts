/**
 * Runs `call` with a signal that aborts with `outer`, or after `limitMs` with a `TimeoutError`. Both are released
 * when the call ends, unlike with `AbortSignal.timeout`, which keeps its timer, fires long after the call and creates
 * an error with a stack; each message left three of them.
 */
export async function withLimit<T>(
  limitMs: number,
  outer: AbortSignal | undefined,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limited = new AbortController();
  const onAbort = () => limited.abort(outer?.reason);
  const onTimeout = () => limited.abort(new DOMException(`not done within ${limitMs} ms`, 'TimeoutError'));
  const timer = setTimeout(onTimeout, limitMs);
  // A call in progress doesn't keep the process alive.
  timer.unref();
  outer?.addEventListener('abort', onAbort, { once: true });
  if (outer?.aborted) onAbort();
  try {
    return await call(limited.signal);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener('abort', onAbort);
  }
}
