/** The thread of one job: it comes as `workerData`, one message with the result goes back. */
import { parentPort, workerData } from 'node:worker_threads';
import type { BoundImage } from './bound-image.ts';
import type { DocumentText } from './read-pdf.ts';
import { type ReadProblem, UnreadableFile } from './read-problem.ts';

/** A file to read, in the thread. An image may also come as bytes. */
export type MediaJob =
  | { readonly kind: 'image'; readonly source: string | Uint8Array<ArrayBuffer>; readonly maxSide: number }
  | { readonly kind: 'pdf' | 'office'; readonly path: string; readonly maxTextBytes: number };

/** The thread's answer. */
export type MediaResult =
  | ({ readonly kind: 'image' } & BoundImage)
  | ({ readonly kind: 'text' } & DocumentText)
  | { readonly kind: 'problem'; readonly problem: ReadProblem };

void answer(workerData);

async function answer(job: MediaJob): Promise<void> {
  try {
    const result = await work(job);
    parentPort?.postMessage(result, result.kind === 'image' ? [result.bytes.buffer] : []);
  } catch (error) {
    const problem = error instanceof UnreadableFile ? error.problem : 'damaged';
    parentPort?.postMessage({ kind: 'problem', problem } satisfies MediaResult);
  }
}

/** Each library is loaded by the jobs that need it. */
async function work(job: MediaJob): Promise<MediaResult> {
  switch (job.kind) {
    case 'image': {
      const { boundImage } = await import('./bound-image.ts');
      return { kind: 'image', ...(await boundImage(job.source, job.maxSide)) };
    }
    case 'pdf': {
      const { readPdf } = await import('./read-pdf.ts');
      return { kind: 'text', ...(await readPdf(job.path, job.maxTextBytes)) };
    }
    case 'office': {
      const { readOffice } = await import('./read-office.ts');
      return { kind: 'text', ...(await readOffice(job.path, job.maxTextBytes)) };
    }
    default:
      return job satisfies never;
  }
}
