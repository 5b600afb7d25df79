import { setImmediate as nextTurn } from 'node:timers/promises';

/** A client in this process hears of a cut connection when the event loop looks at its sockets again. */
export async function flushEventLoop(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await nextTurn();
}
