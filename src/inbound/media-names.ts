import { join } from 'node:path';

/** The folder of the files that came with messages. */
export function mediaFolder(dataDir: string): string {
  return join(dataDir, 'media');
}

/** A name for a new file of the item's, never the sender's; a download writes to it with `.part` behind it. */
export function newMediaName(inboxId: string): string {
  return `${inboxId}.${crypto.randomUUID().slice(0, 8)}`;
}

/** The item of a file that `newMediaName` has named; undefined for any other name, so for every path that leaves the folder. */
export function readMediaName(
  name: string,
): { readonly inboxId: string; readonly isPartial: boolean } | undefined {
  const [, inboxId, partial] = /^([\w-]{1,64})\.[\da-f]{8}(\.part)?$/.exec(name) ?? [];
  return inboxId === undefined ? undefined : { inboxId, isPartial: partial !== undefined };
}
