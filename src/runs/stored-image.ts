import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { LoadImage } from '../agent/convert.ts';
import { fitImageBytes, maxImageBytes } from '../agent/fit-image.ts';
import { readMediaName } from '../inbound/media-names.ts';

/** Loads the images that `binary` parts name, only from the media folder, wherever it is now. */
export function imagesIn(mediaDir: string): LoadImage {
  return async (name) => {
    if (readMediaName(name) === undefined) return undefined;
    const path = join(mediaDir, name);
    try {
      const { size } = await stat(path);
      return (size <= maxImageBytes && fitImageBytes(await readFile(path))) || 'unfit';
    } catch {
      // Removed by upkeep: the accompanying text still names the file.
      return undefined;
    }
  };
}
