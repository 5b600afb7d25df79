/** The thread that parses long texts, one at a time; markdown-desk.ts starts it. */
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

// Loads the parser, so that loading doesn't count against the first text's time.
formatMarkdown('*ready*');
report({ kind: 'ready' });
