import { clearScreenDown, cursorTo, type Interface, moveCursor } from 'node:readline';
import type { ChatLine } from './chat-transcript.ts';
import { printable, rowsOf } from './printable.ts';

/** Where a chat is shown: a screen that can redraw, or a stream that only grows. */
export type ChatScreen = { show(line: ChatLine): void };

export type ChatOutput = NodeJS.WritableStream & { readonly columns?: number; readonly rows?: number };

type FinalLine = Exclude<ChatLine, { kind: 'preview' }>;

const dim = (text: string) => `\u001b[2m${text}\u001b[22m`;
const bold = (text: string) => `\u001b[1m${text}\u001b[22m`;
const red = (text: string) => `\u001b[31m${text}\u001b[39m`;
const green = (text: string) => `\u001b[32m${text}\u001b[39m`;

/** Answers and notices as plain lines; tools, previews and problems are not part of the output. */
export function createStreamScreen(output: NodeJS.WritableStream, errors: NodeJS.WritableStream): ChatScreen {
  return {
    show: (line) => {
      if (line.kind === 'agent' || line.kind === 'notice') output.write(`${printable(line.text)}\n`);
      if (line.kind === 'problem') errors.write(`${printable(line.text)}\n`);
    },
  };
}

/** Final lines scroll up; the preview and the line being typed stay below them and are drawn again. */
export function createTtyScreen(output: ChatOutput, input: Interface): ChatScreen {
  let live: readonly string[] = [];

  const redraw = (print: string | undefined, nextLive: readonly string[]) => {
    const typedRows = input.getCursorPos().rows;
    moveCursor(output, 0, -(live.length + typedRows));
    cursorTo(output, 0);
    clearScreenDown(output);
    if (print !== undefined) output.write(`${print}\n`);
    live = nextLive;
    for (const row of live) output.write(`${row}\n`);
    // readline moves up by the rows it drew last before it draws again.
    output.write('\n'.repeat(typedRows));
    input.prompt(true);
  };

  return {
    show: (line) => {
      if (line.kind !== 'preview') return redraw(styled(line), live);
      const rows = line.text === undefined ? [] : rowsOf(printable(line.text), (output.columns ?? 80) - 1);
      const next = rows.slice(-Math.max(1, (output.rows ?? 24) - 6)).map(dim);
      if (next.length > 0 || live.length > 0) redraw(undefined, next);
    },
  };
}

function styled(line: FinalLine): string {
  const text = printable(line.text);
  switch (line.kind) {
    case 'person':
      return `${dim('›')} ${dim(text)}`;
    case 'agent':
      return `${bold(green('●'))} ${text}\n`;
    case 'notice':
      return dim(text);
    case 'tool':
      return dim(`  ⋯ ${text}`);
    case 'problem':
      return red(text);
    default:
      return line.kind satisfies never;
  }
}
