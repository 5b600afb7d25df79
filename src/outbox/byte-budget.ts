/** Limits how many bytes are in use at once; callers that want more wait, in order. */
export interface ByteBudget {
  /**
   * Waits for this many bytes, or all of them if it wants more than there are. Returns how to give them back, which may
   * be repeated; undefined if the signal aborted the wait.
   */
  take(bytes: number, signal: AbortSignal): Promise<(() => void) | undefined>;
}

type QueuedTaker = { readonly bytes: number; readonly admit: () => void };

/** Creates a budget of this many bytes. */
export function createByteBudget(maxBytes: number): ByteBudget {
  let free = maxBytes;
  let queue: readonly QueuedTaker[] = [];
  const admitWaiting = () => {
    // A large file isn't overtaken by smaller ones, or it would wait forever.
    for (let next = queue[0]; next && next.bytes <= free; next = queue[0]) {
      queue = queue.slice(1);
      free -= next.bytes;
      next.admit();
    }
  };
  const release = (bytes: number) => {
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      free += bytes;
      admitWaiting();
    };
  };
  return {
    take: (wanted, signal) => {
      const bytes = Math.min(wanted, maxBytes);
      if (signal.aborted) return Promise.resolve(undefined);
      return new Promise((resolve) => {
        const leave = () => {
          queue = queue.filter((one) => one !== waiting);
          resolve(undefined);
          admitWaiting();
        };
        const admit = () => {
          signal.removeEventListener('abort', leave);
          resolve(release(bytes));
        };
        const waiting: QueuedTaker = { bytes, admit };
        signal.addEventListener('abort', leave, { once: true });
        queue = [...queue, waiting];
        admitWaiting();
      });
    },
  };
}
