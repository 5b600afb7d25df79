import { clearScreenDown, cursorTo, type Interface, moveCursor } from 'node:readline';
import type { ChatLine } from './chat-transcript.ts';
import { pastedText } from './paste-filter.ts';

/** Where a chat is shown: a terminal that can be redrawn, or a stream that only grows. */
export type ChatScreen = {
  show(line: ChatLine): void;
  /** Keeps the line that the person has sent, above the growing answer. */
  submitted(text: string): void;
};

export type ChatOutput = NodeJS.WritableStream & { readonly columns?: number; readonly rows?: number };

type FinalLine = Exclude<ChatLine, { kind: 'preview' }>;

/** Width of the prompt and of the marks before a person's and the agent's lines. */
const promptCells = 2;

const dim = (text: string) => `\u001b[2m${text}\u001b[22m`;
const bold = (text: string) => `\u001b[1m${text}\u001b[22m`;
const red = (text: string) => `\u001b[31m${text}\u001b[39m`;
const green = (text: string) => `\u001b[32m${text}\u001b[39m`;

/** Prints answers and notices as plain lines, and problems to `errors`; tools and previews aren't shown. */
export function createStreamScreen(output: NodeJS.WritableStream, errors: NodeJS.WritableStream): ChatScreen {
  return {
    show: (line) => {
      if (line.kind === 'agent' || line.kind === 'notice') output.write(`${printable(line.text)}\n`);
      if (line.kind === 'problem') errors.write(`${printable(line.text)}\n`);
    },
    submitted: () => undefined,
  };
}

/** Lets final lines scroll up; the preview and the line being typed stay below them and are redrawn. */
export function createTtyScreen(output: ChatOutput, input: Interface): ChatScreen {
  let live: readonly string[] = [];

  // A terminal that doesn't know its size reports 0.
  const columns = () => output.columns || 80;
  const redraw = (print: string | undefined, nextLive: readonly string[], sentRows = 0) => {
    const typedRows = input.getCursorPos().rows;
    moveCursor(output, 0, -(live.length + typedRows + sentRows));
    cursorTo(output, 0);
    clearScreenDown(output);
    if (print !== undefined) output.write(`${print}\n`);
    live = nextLive;
    for (const row of live) output.write(`${row}\n`);
    // readline moves up by the rows it last drew before it redraws.
    output.write('\n'.repeat(typedRows));
    input.prompt(true);
  };

  return {
    show: (line) => {
      if (line.kind !== 'preview') return redraw(styled(line, columns() - 1), live);
      const rows = line.text === undefined ? [] : rowsOf(printable(line.text), columns() - 1);
      const next = rows.slice(-Math.max(1, (output.rows || 24) - 6)).map(dim);
      if (next.length > 0 || live.length > 0) redraw(undefined, next);
    },
    submitted: (text) => {
      // readline left the line where it was typed, below the growing answer.
      const sentRows = Math.max(1, Math.ceil((promptCells + cellsOf(text)) / columns()));
      redraw(styled({ kind: 'person', text: pastedText(text) }, columns() - 1), live, sentRows);
    },
  };
}

/** Formats a line for a terminal. */
export function styled(line: FinalLine, columns: number): string {
  const wrapped = (room: number) => rowsOf(printable(line.text), columns - room).map((row) => row.trimEnd());
  switch (line.kind) {
    case 'person':
      return wrapped(promptCells)
        .map((row, index) => dim(`${index === 0 ? '›' : ' '} ${row}`))
        .join('\n');
    case 'agent':
      return `${bold(green('●'))} ${wrapped(promptCells).join('\n')}\n`;
    case 'notice':
      return wrapped(0).map(dim).join('\n');
    case 'tool':
      return dim(`  ⋯ ${printable(line.text)}`);
    case 'problem':
      return red(wrapped(0).join('\n'));
    default:
      return line.kind satisfies never;
  }
}

const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u;
const zeroWidth = /\p{Mark}|\p{Cf}/u;

/**
 * Returns text that is safe to print: without escape sequences, control characters other than newline and tab, and
 * characters that change the direction of text, so that a message can't disguise itself.
 */
export function printable(text: string): string {
  return (
    text
      .replaceAll('\r\n', '\n')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to remove
      .replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|[ -/]*[0-~])?/g, '')
      .replace(/[^\P{Cc}\n\t]/gu, '')
      .replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '')
  );
}

/**
 * Cuts text into rows of at most `columns` cells, between words where possible. A space at the end of a row may exceed
 * the width by one cell.
 */
export function rowsOf(text: string, columns: number): readonly string[] {
  return text.split('\n').flatMap((line) => wrap(line.replaceAll('\t', '    '), columns));
}

/** Returns how many cells a text takes in one row. */
function cellsOf(text: string): number {
  return [...text].reduce((cells, character) => cells + widthOf(character), 0);
}

function wrap(line: string, columns: number): readonly string[] {
  const rows: string[] = [];
  let row = '';
  let cells = 0;
  /** Where the row's last word begins, and the cells before it; 0: the row is a single word. */
  let word = { start: 0, cells: 0 };
  for (const character of line) {
    const width = widthOf(character);
    if (cells + width > columns) {
      const cut = character === ' ' || word.start === 0 ? row.length : word.start;
      rows.push(row.slice(0, cut) + (character === ' ' ? character : ''));
      row = row.slice(cut);
      cells = cut === word.start ? cells - word.cells : 0;
      word = { start: 0, cells: 0 };
      if (character === ' ') continue;
    }
    row += character;
    cells += width;
    // Never break after indentation.
    if (character === ' ' && row.trim() !== '') word = { start: row.length, cells };
  }
  return [...rows, row];
}

function widthOf(character: string): number {
  if (zeroWidth.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}
