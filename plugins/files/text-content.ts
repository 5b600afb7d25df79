import { fileProblem } from './file-problem.ts';

/** How much of a file is looked at to tell text from binary data, in bytes. */
export const sniffedBytes = 8192;

export function looksBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, sniffedBytes).includes(0);
}

/**
 * The file as text, byte order mark included, so that writing it back changes nothing else. Throws
 * ParleyError `tool_failed` for what is not UTF-8: reading it anyway would damage it on the next edit.
 */
export function decodeText(bytes: Uint8Array, path: string): string {
  if (looksBinary(bytes)) throw fileProblem(`${path} is a binary file (${bytes.length} bytes).`);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw fileProblem(`${path} is not UTF-8 text (${bytes.length} bytes).`, error);
  }
}

/** A name or line as one line of output: control characters become visible. */
export function onOneLine(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) =>
    character === '\t' ? character : `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}
