/** A server on its own thread that cuts its connections at every point of a call, with FIN and with RST. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { parentPort } from 'node:worker_threads';
import { Door } from '../platforms/shared/door.ts';

const upTo = (most: number) => Math.floor(Math.random() * most);

function answer({ socket }: IncomingMessage, response: ServerResponse): void {
  const cut = () => (upTo(2) === 0 ? socket.destroy() : socket.resetAndDestroy());
  const body = JSON.stringify('x'.repeat(upTo(2) === 0 ? 10 : upTo(200_000)));
  const said = upTo(3);
  if (said === 1) response.write(body.slice(0, 5));
  if (said === 2) response.end(body);
  const moment = upTo(4);
  if (moment === 0) cut();
  else if (moment === 1) setImmediate(cut);
  else if (said < 2) response.end(said === 1 ? body.slice(5) : body);
}

const door = new Door({ onRequest: answer });
await door.open();
parentPort?.postMessage(door.port);
for (;;) {
  await pause(upTo(30));
  await door.shut();
  await pause(upTo(3));
  await door.open();
}
