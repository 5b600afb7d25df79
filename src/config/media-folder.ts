import { join } from 'node:path';

/** Returns the folder of the files received with messages, and of those to send. */
export function mediaFolder(dataDir: string): string {
  return join(dataDir, 'media');
}
