// Loaded before Parley by `npm run walk`: counts which functions run, in the main thread and in each worker thread. On
// the first SIGWINCH all counts begin anew; on the second, what has run since is written down.
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { isMainThread } from 'node:worker_threads';

const { WALK_FILE = '' } = process.env;
const coverage = { callCount: true, detailed: false };

if (isMainThread) {
  const main = new Session();
  main.connect();
  const workers = new Map();
  main.on('NodeWorker.attachedToWorker', ({ params: { sessionId } }) => {
    const ask = askWorker(main, sessionId);
    workers.set(sessionId, ask);
    void ask('Profiler.enable').then(() => ask('Profiler.startPreciseCoverage', coverage));
  });
  main.on('NodeWorker.detachedFromWorker', ({ params: { sessionId } }) => workers.delete(sessionId));
  await main.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
  await main.post('Profiler.enable');
  await main.post('Profiler.startPreciseCoverage', coverage);
  let step = 0;
  // Reading the counts sets them back to zero.
  process.on('SIGWINCH', async () => {
    step += 1;
    const asked = [main.post('Profiler.takePreciseCoverage')];
    for (const ask of workers.values()) asked.push(ask('Profiler.takePreciseCoverage'));
    const [ofMain, ...ofWorkers] = await Promise.all(asked);
    const ran = ofWorkers.flatMap(({ result }) => result);
    writeFileSync(`${WALK_FILE}.${step}`, JSON.stringify({ main: ofMain.result, workers: ran }));
  });
}

/** Returns a function that sends a command to a worker's own inspector and resolves with its answer. */
function askWorker(main, sessionId) {
  const waiting = new Map();
  let last = 0;
  main.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
    if (params.sessionId !== sessionId) return;
    const { id, result } = JSON.parse(params.message);
    waiting.get(id)?.(result);
    waiting.delete(id);
  });
  return (method, params = {}) => {
    last += 1;
    const message = JSON.stringify({ id: last, method, params });
    const answered = new Promise((resolve) => waiting.set(last, resolve));
    void main.post('NodeWorker.sendMessageToWorker', { sessionId, message });
    return answered;
  };
}
