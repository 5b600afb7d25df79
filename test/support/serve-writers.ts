/** A thread that serves one SQLite store after the other. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { storeProgram } from '../../src/steps.ts';
import type { WriterTask } from '../../src/store/base/command.ts';
import { serveWriter } from '../../src/store/sqlite/writer-thread.ts';

parentPort?.on('message', ({ port, task }: { readonly port: MessagePort; readonly task: WriterTask }) =>
  serveWriter(storeProgram, port, task),
);
