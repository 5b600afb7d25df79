/**
 * The connection of one streamed call. To cut it off costs a new connection, so a whole answer is read to its
 * end.
 */
export type Connection = {
  readonly signal: AbortSignal;
  /** The answer is whole: an abort of the call does not cut it off any more. Never rejects. */
  readToEnd(events: AsyncIterator<unknown>): Promise<void>;
  /** Cuts it off, unless it is being read to its end. */
  close(): void;
};

/** For how long the end of an answer that is whole may take, ms. */
const lingerMs = 2_000;

/** Follows the signal of the call. */
export function openConnection(call: AbortSignal): Connection {
  const cut = new AbortController();
  const cutOff = () => cut.abort('the call is over');
  const letGo = () => call.removeEventListener('abort', cutOff);
  call.addEventListener('abort', cutOff, { once: true });
  let isWhole = false;
  return {
    signal: cut.signal,
    readToEnd: async (events) => {
      isWhole = true;
      letGo();
      const timer = setTimeout(cutOff, lingerMs).unref();
      try {
        while ((await events.next()).done !== true);
      } catch {
        // How the connection ended after a whole answer does not matter.
      } finally {
        clearTimeout(timer);
      }
    },
    close: () => {
      letGo();
      if (!isWhole) cutOff();
    },
  };
}
