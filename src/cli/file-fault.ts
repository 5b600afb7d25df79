/** Faults of files that the person who runs a command can do something about. */
import { accessSync, constants } from 'node:fs';
import { ParleyError } from '#contracts/errors.ts';
import { findFolderFault } from '../config/write-settings.ts';

const faults: ReadonlyMap<string, string> = new Map([
  ['EACCES', "isn't accessible for you; run this as its owner"],
  ['EPERM', "isn't accessible for you; run this as its owner"],
  ['EROFS', 'is on a file system that is read-only'],
  ['ENOSPC', 'is on a disk that is full'],
  ['EDQUOT', 'is on a disk whose quota is used up'],
  ['ENOTDIR', "isn't in a folder"],
  ['EISDIR', 'is a folder'],
  ['EIO', 'is on a failing disk'],
]);

/** Words a failed call on a file, with the folder that can't be written; undefined for any other error. */
export function describeFileFault(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('path' in error) || typeof error.path !== 'string') return undefined;
  const code = 'code' in error ? String(error.code) : '';
  const words = faults.get(code);
  if (words === undefined) return undefined;
  const folder = code === 'ENOSPC' || code === 'EIO' ? undefined : findFolderFault(error.path);
  return folder === undefined ? `${error.path} ${words}.` : `${folder}, so Parley can't write ${error.path}.`;
}

/** Throws `invalid_input` for a data folder that is another user's: it would look like one that is empty. */
export function assertReadable(dataDir: string): void {
  try {
    accessSync(dataDir, constants.R_OK | constants.X_OK);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EACCES')) return;
    throw new ParleyError(
      'invalid_input',
      `The data folder ${dataDir} isn't readable for you. Run this as the user that Parley runs as.`,
    );
  }
}
