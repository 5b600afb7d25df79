/** The thread that parses long texts, one at a time; markdown-formatter.ts starts it. */
import { parentPort } from 'node:worker_threads';
import { formatMarkdown } from './markdown.ts';
import type { FormatterReport, FormatterRequest } from './markdown-formatter.ts';

/** Longer results lose their styles: reading them back would block the event loop. */
const maxSpans = 5_000;

const report = (message: FormatterReport) => parentPort?.postMessage(message);

parentPort?.on('message', ({ id, markdown }: FormatterRequest) => {
  const { text, spans } = formatMarkdown(markdown);
  const formatted = { text, spans: spans.slice(0, maxSpans) };
  report({ kind: 'formatted', id, formatted, cpu: process.threadCpuUsage() });
});

// Loads the parser, so that loading doesn't count against the first text's time.
formatMarkdown('*ready*');
report({ kind: 'ready', cpu: process.threadCpuUsage() });
