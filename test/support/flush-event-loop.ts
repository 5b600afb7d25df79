import { setImmediate as nextTurn } from 'node:timers/promises';

/** A client in this process learns of a cut connection when the event loop next polls its sockets. */
export async function flushEventLoop(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await nextTurn();
}
