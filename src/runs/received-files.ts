import { join } from 'node:path';
import type { StoredFile } from '#contracts/attachment.ts';
import type { ReceivedFile } from '#contracts/tool.ts';
import { cleanLabel } from '../texts/untrusted-text.ts';

/** Names files for the folder `inbox`: as they were sent, each once. */
export function nameReceivedFiles(mediaDir: string, files: readonly StoredFile[]): readonly ReceivedFile[] {
  const taken = new Set<string>();
  return files.map(({ path, name: sent, sizeBytes }) => {
    const name = unusedName(fileName(sent), taken);
    taken.add(name);
    return { name, path: join(mediaDir, path), sizeBytes };
  });
}

/** The sender chose it, so it must not lead anywhere. */
function fileName(sent: string): string {
  const name = cleanLabel(sent).replaceAll(/[/\\]/g, '_');
  return /^\.*$/.test(name) ? 'file' : name;
}

function unusedName(name: string, taken: ReadonlySet<string>): string {
  if (!taken.has(name)) return name;
  const dot = name.lastIndexOf('.') > 0 ? name.lastIndexOf('.') : name.length;
  for (let n = 2; ; n += 1) {
    const other = `${name.slice(0, dot)} (${n})${name.slice(dot)}`;
    if (!taken.has(other)) return other;
  }
}
