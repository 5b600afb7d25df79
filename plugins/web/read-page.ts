/**
 * Turns a page into text in a thread of its own, which ends with the page: parsing holds up nothing else, can be stopped
 * at any moment, and what a hostile page makes a library keep is gone afterwards.
 */
import { Worker } from 'node:worker_threads';
import type { Page } from './fetch-page.ts';
import type { PageRequest, PageText } from './page-thread.ts';
import { networkProblem, webProblem } from './web-problem.ts';

export type ReadOptions = {
  /** In characters of the text. */
  readonly offset: number;
  readonly signal: AbortSignal;
};

/** How many pages are parsed at once; others wait for a turn. */
const maxThreads = 2;
const maxHeapMb = 256;
/** How much the process may grow during a page: buffers, such as those of an unpacked PDF, aren't part of a heap. */
const maxGrowthBytes = 512 * 1024 * 1024;
const memoryCheckMs = 50;

const threads: { running: number; readonly waiting: (() => void)[] } = { running: 0, waiting: [] };

/** Returns a piece of the page's text. Throws ParleyError `tool_failed` with a sentence for the model. */
export async function readPage(page: Page, { offset, signal }: ReadOptions): Promise<PageText> {
  while (threads.running >= maxThreads) await new Promise<void>((resolve) => threads.waiting.push(resolve));
  threads.running += 1;
  try {
    signal.throwIfAborted();
    const { contentType, bytes, url } = page;
    return await runThread({ contentType, bytes, url: url.href, offset }, signal);
  } catch (error) {
    throw networkProblem(error, page.url.host, signal);
  } finally {
    threads.running -= 1;
    threads.waiting.shift()?.();
  }
}

async function runThread(request: PageRequest, signal: AbortSignal): Promise<PageText> {
  const thread = new Worker(new URL('./page-thread.ts', import.meta.url), {
    workerData: request,
    transferList: [request.bytes.buffer],
    env: {},
    resourceLimits: { maxYoungGenerationSizeMb: 32, maxOldGenerationSizeMb: maxHeapMb },
  });
  const { promise, resolve, reject } = Promise.withResolvers<PageText>();
  const tooHeavy = () => reject(webProblem('The page needs too much memory to be read.'));
  thread.on('message', (found: PageText | { readonly problem: string }) =>
    'problem' in found ? reject(webProblem(found.problem)) : resolve(found),
  );
  thread.on('error', tooHeavy);
  thread.on('exit', tooHeavy);
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const atStart = process.memoryUsage.rss();
  const watch = setInterval(() => {
    if (process.memoryUsage.rss() - atStart > maxGrowthBytes) tooHeavy();
  }, memoryCheckMs);
  try {
    return await promise;
  } finally {
    clearInterval(watch);
    signal.removeEventListener('abort', onAbort);
    await thread.terminate();
  }
}
