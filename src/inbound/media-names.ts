import { join } from 'node:path';
import { outgoingPrefix } from '../store/intake/expire-media.ts';

/** Returns the folder of the files received with messages. */
export function mediaFolder(dataDir: string): string {
  return join(dataDir, 'media');
}

/** Creates a name for a new file of the item, never the sender's; downloads append `.part` to it. */
export function newMediaName(inboxId: string): string {
  return `${inboxId}.${crypto.randomUUID().slice(0, 8)}`;
}

/** Creates a name for the copy of a file to send. */
export function newOutgoingName(): string {
  return newMediaName(`${outgoingPrefix}${crypto.randomUUID()}`);
}

/**
 * Returns the item of a file named by `newMediaName`; undefined for any other name, and so for every path out of the
 * folder.
 */
export function readMediaName(
  name: string,
): { readonly inboxId: string; readonly isPartial: boolean } | undefined {
  const [, inboxId, partial] = /^([\w-]{1,64})\.[\da-f]{8}(\.part)?$/.exec(name) ?? [];
  return inboxId === undefined ? undefined : { inboxId, isPartial: partial !== undefined };
}
