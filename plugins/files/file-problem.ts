import { ParleyError } from '#contracts/errors.ts';

/** A failure that the model reads. It names the path as the model wrote it, never the host's. */
export function fileProblem(message: string, cause?: unknown): ParleyError {
  return new ParleyError('tool_failed', message, { cause });
}

const sentences: Readonly<Record<string, (path: string) => string>> = {
  ENOENT: (path) => `${path} does not exist.`,
  ENOTDIR: (path) => `${path} is not a folder.`,
  ELOOP: (path) => linkSentence(path),
  EACCES: (path) => `${path} may not be opened: permission denied.`,
  EPERM: (path) => `${path} may not be changed: not permitted.`,
  EROFS: (path) => `${path} cannot be written: the file system is read-only.`,
  ENOSPC: (path) => `${path} cannot be written: the disk is full.`,
  EDQUOT: (path) => `${path} cannot be written: the disk quota is used up.`,
  ENAMETOOLONG: (path) => `${path} has a name that is too long.`,
  EISDIR: (path) => `${path} is a folder.`,
};

/** Links are never followed, inside the workspace or out of it. */
export function linkSentence(path: string): string {
  return `${path} is a symbolic link; the file tools do not follow links.`;
}

/** The sentence for a failed system call on `path`; everything that is not one passes as it is. */
export function fromSystemError(error: unknown, path: string): unknown {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
  const sentence = sentences[code];
  return sentence === undefined ? error : fileProblem(sentence(path), error);
}
