/** Bytes that may wait for a slow client; over this it is cut off and catches up by reading from the store. */
const maxWaitingBytes = 8 * 1024 * 1024;

type Outlet = {
  /** Returns the number of bytes waiting for the client. */
  waiting(): number;
  write(text: string): void;
};

/**
 * Returns a send that writes nothing and returns false while too much is waiting. The connection's longest text is
 * allowed on top of the limit: a page of long messages may exceed it on its own, has to get through, and is followed
 * by more.
 */
export function createBoundedSend({ waiting, write }: Outlet): (text: string) => boolean {
  let longest = 0;
  return (text) => {
    const before = waiting();
    if (before > maxWaitingBytes + longest) return false;
    write(text);
    longest = Math.max(longest, waiting() - before);
    return true;
  };
}
