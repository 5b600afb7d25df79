/**
 * Writer threads that outlive their store: starting one takes up to 100 ms of processor time, opening a store in one
 * that exists a tenth of it, and a file of tests opens up to fifty.
 */
import { EventEmitter } from 'node:events';
import { MessageChannel, type Worker } from 'node:worker_threads';
import type { WriterTask } from '../../src/store/base/command.ts';
import { startThread } from '../../src/store/sqlite/sqlite-store.ts';
import type { WriterReport } from '../../src/store/sqlite/writer-messages.ts';

/** Threads whose last store is closed. */
const idle: Worker[] = [];

/** Returns what looks to a store like a thread of its own. The thread behind it serves no other store meanwhile. */
export function lendWriter(_module: URL, task: WriterTask): Worker {
  const thread = idle.pop() ?? startThread(new URL('./serve-writers.ts', import.meta.url));
  thread.ref();
  const { port1: port, port2 } = new MessageChannel();
  thread.postMessage({ port: port2, task }, [port2]);
  const writer = new EventEmitter();
  const pass = (error: unknown) => writer.emit('error', error);
  thread.once('error', pass);
  port.on('message', (report: WriterReport) => {
    writer.emit('message', report);
    if (report.kind !== 'closed' && report.kind !== 'unusable') return;
    thread.off('error', pass);
    thread.unref();
    idle.push(thread);
  });
  port.once('close', () => writer.emit('exit'));
  return Object.assign(writer, {
    postMessage: (message: unknown) => port.postMessage(message),
    terminate: () => thread.terminate(),
  }) as unknown as Worker;
}
