/**
 * The connection of one streamed call. Cutting it off costs a new connection, so a complete answer is read to the
 * end of its stream.
 */
export type Connection = {
  readonly signal: AbortSignal;
  /** Call once the answer is complete: aborting the call no longer cuts the stream off. Never rejects. */
  readToEnd(events: AsyncIterator<unknown>): Promise<void>;
  /** Cuts the stream off, unless it is being read to its end. */
  close(): void;
};

/** How long the stream of a complete answer may take to end, ms. */
const lingerMs = 2_000;

/** Opens a connection that follows the signal of the call. */
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
        // How the connection ended after a complete answer doesn't matter.
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
