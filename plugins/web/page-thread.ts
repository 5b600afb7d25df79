/** The thread of one page: its bytes come as `workerData`, one message with a piece of its text goes back. */
import { parentPort, workerData } from 'node:worker_threads';
import { pageText } from './page-text.ts';

export type PageRequest = {
  readonly url: string;
  readonly contentType: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly offset: number;
};

/** A piece of a page's text, and the length of all of it in characters. */
export type PageText = { readonly text: string; readonly total: number };

/** Leaves room for the lines around the text in a result of 32 KB. */
const maxPieceBytes = 28_000;

void answer(workerData);

async function answer(request: PageRequest): Promise<void> {
  try {
    parentPort?.postMessage(pieceOf((await pageText(request)).toWellFormed(), request.offset));
  } catch (error) {
    parentPort?.postMessage({ problem: error instanceof Error ? error.message : String(error) });
  }
}

/** Ends the piece with a line if one ends near the limit. */
function pieceOf(text: string, offset: number): PageText {
  const rest = text.slice(offset, offset + maxPieceBytes);
  const { read } = new TextEncoder().encodeInto(rest, new Uint8Array(maxPieceBytes));
  const isLast = offset + read >= text.length;
  const lineEnd = rest.lastIndexOf('\n', read - 1) + 1;
  const end = isLast || lineEnd < read / 2 ? read : lineEnd;
  return { text: rest.slice(0, end), total: text.length };
}
