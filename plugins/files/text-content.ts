import { isUtf8 } from 'node:buffer';
import { fileProblem } from './file-problem.ts';

/** How much of a file is examined to distinguish text from binary data, in bytes. */
const sniffedBytes = 8192;

export function looksBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, sniffedBytes).includes(0);
}

/** Throws ParleyError `tool_failed` for anything but UTF-8 text, which an edit would damage. */
export function checkText(bytes: Uint8Array, path: string): void {
  if (looksBinary(bytes)) throw fileProblem(`${path} is a binary file (${bytes.length} bytes).`);
  if (!isUtf8(bytes)) throw fileProblem(`${path} isn't UTF-8 text (${bytes.length} bytes).`);
}

/** Formats a name or line as one line of output, with visible control characters. */
export function onOneLine(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) =>
    character === '\t' ? character : `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}
