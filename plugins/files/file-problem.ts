import { isUtf8 } from 'node:buffer';
import { ParleyError } from '#contracts/errors.ts';

/** Creates a failure for the model to read. It names the path as the model wrote it, never the host's path. */
export function fileProblem(message: string, cause?: unknown): ParleyError {
  return new ParleyError('tool_failed', message, { cause });
}

const sentences: Readonly<Record<string, (path: string) => string>> = {
  ENOENT: (path) => `${path} doesn't exist.`,
  ENOTDIR: (path) => `${path} isn't a folder.`,
  ELOOP: (path) => linkSentence(path),
  EACCES: (path) => `${path} can't be opened: permission denied.`,
  EPERM: (path) => `${path} can't be changed: not permitted.`,
  EROFS: (path) => `${path} can't be written: the file system is read-only.`,
  ENOSPC: (path) => `${path} can't be written: the disk is full.`,
  EDQUOT: (path) => `${path} can't be written: the disk quota is used up.`,
  ENAMETOOLONG: (path) => `${path} has a name that is too long.`,
  EISDIR: (path) => `${path} is a folder.`,
};

/** Returns the sentence about a link. Links are never followed, whether they lead inside or outside the workspace. */
export function linkSentence(path: string): string {
  return `${path} is a symbolic link; the file tools don't follow links.`;
}

/** Returns a failure with a sentence for a failed system call on `path`; any other error is returned unchanged. */
export function fromSystemError(error: unknown, path: string): unknown {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
  const sentence = sentences[code];
  return sentence === undefined ? error : fileProblem(sentence(path), error);
}

/** Returns the code of the system error behind a failure; '' if there is none. */
export function codeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause ? String(cause.code) : '';
}

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
