/** The thread in which long texts are parsed: started by markdown-desk.ts, one text after the other. */
import { parentPort } from 'node:worker_threads';
import { formatMarkdown } from './markdown.ts';
import type { DeskReport, DeskRequest } from './markdown-desk.ts';

/** Longer results lose their styles: reading them back would block the event loop. */
const mostSpans = 5_000;

const report = (message: DeskReport) => parentPort?.postMessage(message);

parentPort?.on('message', ({ id, markdown }: DeskRequest) => {
  const { text, spans } = formatMarkdown(markdown);
  report({ kind: 'formatted', id, formatted: { text, spans: spans.slice(0, mostSpans) } });
});

// Loads the parser, so that the time of the first text is its own.
formatMarkdown('*ready*');
report({ kind: 'ready' });
