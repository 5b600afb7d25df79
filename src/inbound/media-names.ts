import { join } from 'node:path';
import { outgoingPrefix } from '../store/intake/expire-media.ts';

/** Returns the folder of the files received with messages. */
export function mediaFolder(dataDir: string): string {
  return join(dataDir, 'media');
}

/**
 * Creates a name for a new file of the item, never the sender's; downloads append `.part` to it. The name of a file that
 * may be looked at once says so, since it is removed earlier.
 */
export function newMediaName(inboxId: string, { isViewOnce = false } = {}): string {
  return `${inboxId}.${crypto.randomUUID().slice(0, 8)}${isViewOnce ? '.once' : ''}`;
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
): { readonly inboxId: string; readonly isViewOnce: boolean; readonly isPartial: boolean } | undefined {
  const [, inboxId, once, partial] = /^([\w-]{1,64})\.[\da-f]{8}(\.once)?(\.part)?$/.exec(name) ?? [];
  if (inboxId === undefined) return undefined;
  return { inboxId, isViewOnce: once !== undefined, isPartial: partial !== undefined };
}
