import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { ParleyError } from '#contracts/errors.ts';
import type { PersistResult } from '#contracts/hook.ts';
import type { Store, StoreCommand, StoreSetup, WriterTask } from '../base/command.ts';
import { openReader } from './read-only-store.ts';
import {
  errorOf,
  faultOf,
  type JudgedResult,
  type WriterAnswer,
  type WriterReport,
  type WriterRequest,
} from './writer-messages.ts';

type Waiter = {
  resolve(output: unknown): void;
  reject(error: unknown): void;
  /** Has hooks see a result that the step words, and repeats the step. */
  judge(result: JudgedResult): void;
};

/**
 * Opens (and migrates) the database file. Writes go to one writer thread, reads use a read-only connection in this
 * thread. Throws `store_unavailable` with the reason.
 */
export async function openSqliteStore(file: string, setup: StoreSetup): Promise<Store> {
  const { writer, texts, persistHook, startWriter = startThread } = setup;
  const worker = startWriter(writer, { file, texts });
  const waiters = new Map<number, Waiter>();
  await ready(worker);
  const onReport = (report: WriterReport) => {
    if (report.kind === 'answers') for (const answer of report.answers) settle(waiters, answer);
  };
  const failAll = (cause: unknown) => {
    for (const waiter of waiters.values()) waiter.reject(lost(cause));
    waiters.clear();
  };
  worker.on('message', onReport);
  worker.on('error', failAll);
  const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  let isGone = false;
  worker.on('exit', () => {
    isGone = true;
    failAll(undefined);
  });

  const reader = await readerBeside(worker, file);
  const post = createPostbox(worker, waiters);
  let lastId = 0;
  let isClosed = false;

  const write = <Input, Output>(command: StoreCommand<Input, Output>, input: Input): Promise<Output> => {
    if (isClosed || isGone) return Promise.reject(lost(undefined));
    const request = { id: ++lastId, command: command.name, input };
    // The writer runs exactly the command named here, so the output has this command's type.
    return ask(request, { post, waiters, hook: persistHook?.() }) as Promise<Output>;
  };

  return {
    broken: exited.then(() => (isClosed ? new Promise<void>(() => undefined) : undefined)),
    write,
    writeAlong: (command, input) => {
      if (!isClosed) post({ command: command.name, input });
    },
    read: reader.read,
    version: reader.version,
    close: async () => {
      if (isClosed) return;
      isClosed = true;
      post.flush();
      worker.postMessage('close');
      await exited;
      reader.close();
    },
  };
}

/** Starts a thread, which reads its task from `workerData`. */
export function startThread(module: URL, task?: WriterTask): Worker {
  return new Worker(module, {
    workerData: task,
    env: writerEnvironment(),
    // The writer allocates small, short-lived objects: a larger nursery would only stay resident.
    resourceLimits: { maxYoungGenerationSizeMb: 4 },
  });
}

/** Opens the reader. If that fails, the store can't be opened and nothing else would end the writer, so this does. */
async function readerBeside(worker: Worker, file: string): Promise<ReturnType<typeof openReader>> {
  try {
    return openReader(file);
  } catch (error) {
    await worker.terminate();
    throw errorOf(faultOf(error, file));
  }
}

/**
 * Returns the writer's environment: only the location of compiled code. Without that, the writer would strip and
 * compile its modules again at each start, which costs 60 MB and a quarter of a second.
 */
function writerEnvironment(): NodeJS.ProcessEnv {
  const folder = getCompileCacheDir();
  // Node.js appends a folder for its version to the one it is given.
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) };
}

/**
 * Sends requests that are made together as one message, because each message wakes a thread. While the writer is busy
 * it can't begin anything new, so later requests from the same turn of the event loop join the message.
 */
function createPostbox(worker: Worker, waiters: ReadonlyMap<number, Waiter>) {
  let batch: WriterRequest[] = [];
  const flush = () => {
    if (batch.length === 0) return;
    worker.postMessage(batch);
    batch = [];
  };
  const post = (request: WriterRequest) => {
    batch.push(request);
    if (batch.length > 1) return;
    const isWorking = waiters.size > (request.id === undefined ? 0 : 1);
    if (isWorking) setImmediate(flush);
    else queueMicrotask(flush);
  };
  return Object.assign(post, { flush });
}

type WriterPort = {
  post(request: WriterRequest): void;
  readonly waiters: Map<number, Waiter>;
  readonly hook: PersistResult | undefined;
};

/** Sends a request, and once more with each result that the hook has seen; resolves with the step's output. */
function ask(
  request: WriterRequest & { readonly id: number },
  { post, waiters, hook }: WriterPort,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let judged: readonly JudgedResult[] = [];
    const send = () => post({ ...request, ...(hook && { judged }) });
    const judge = ({ of, parts }: JudgedResult) => {
      judged = [...judged, { of, parts: hook?.(of, parts) ?? parts }];
      send();
    };
    waiters.set(request.id, { resolve, reject, judge });
    send();
  });
}

function settle(waiters: Map<number, Waiter>, answer: WriterAnswer): void {
  const waiter = waiters.get(answer.id);
  if (!waiter) return;
  if (answer.kind === 'unjudged') {
    waiter.judge(answer);
    return;
  }
  waiters.delete(answer.id);
  if (answer.kind === 'done') waiter.resolve(answer.output);
  else waiter.reject(errorOf(answer.fault));
}

function ready(worker: Worker): Promise<void> {
  return new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('message', (report: WriterReport) => {
      worker.off('error', reject);
      if (report.kind === 'unusable') reject(errorOf(report.fault));
      else resolve();
    });
  });
}

function lost(cause: unknown): ParleyError {
  return new ParleyError('store_unavailable', 'The database writer has stopped; restart Parley.', { cause });
}
