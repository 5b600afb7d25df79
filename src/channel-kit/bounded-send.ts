/** Bytes that may wait for a client that reads slowly; past them it is cut off and catches up by reading. */
const mostWaitingBytes = 8 * 1024 * 1024;

type Outlet = {
  /** Bytes that wait for the client. */
  waiting(): number;
  write(text: string): void;
};

/**
 * Makes a send that writes nothing and returns false while too much waits behind the longest text of the connection: one page
 * of long messages may be too much by itself, has to get through, and is followed by more.
 */
export function createBoundedSend({ waiting, write }: Outlet): (text: string) => boolean {
  let longest = 0;
  return (text) => {
    const before = waiting();
    if (before > mostWaitingBytes + longest) return false;
    write(text);
    longest = Math.max(longest, waiting() - before);
    return true;
  };
}
