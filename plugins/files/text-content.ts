import { isUtf8 } from 'node:buffer';
import { fileProblem } from './file-problem.ts';

/** How much of a file is looked at to tell text from binary data, in bytes. */
const sniffedBytes = 8192;

export function looksBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, sniffedBytes).includes(0);
}

/** Throws ParleyError `tool_failed` for what is not UTF-8: an edit would damage what was read as something else. */
export function checkText(bytes: Uint8Array, path: string): void {
  if (looksBinary(bytes)) throw fileProblem(`${path} is a binary file (${bytes.length} bytes).`);
  if (!isUtf8(bytes)) throw fileProblem(`${path} is not UTF-8 text (${bytes.length} bytes).`);
}

/** A name or line as one line of output: control characters become visible. */
export function onOneLine(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) =>
    character === '\t' ? character : `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}
