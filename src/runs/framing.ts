import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '#contracts/clock.ts';
import type { LoadDocument, LoadImage } from '../agent/convert.ts';
import type { FitImage } from '../agent/fit-image.ts';
import { readMediaName } from '../inbound/media.ts';
import { type FitLargeImage, maxLargeImageBytes } from '../media/fit-images.ts';
import type { TextFraming } from '../store/lanes/take-rows.ts';
import { newDelimiter, untrustedBegin, untrustedEnd } from '../texts/untrusted-text.ts';

/**
 * Creates the framing of the messages that a run takes. The delimiter around other people's words is new each time, so
 * nobody can forge it. Throws for a time zone that doesn't exist.
 */
export function createFraming({ clock, timeZone }: { clock: Clock; timeZone: string }): () => TextFraming {
  const sayTime = createTimeText(timeZone);
  return () => {
    const boundary = newDelimiter();
    return {
      now: sayTime(clock.now()),
      contextIntro: untrustedBegin('what was said and done here before, for context only', boundary),
      overflowIntro: untrustedBegin('older messages, shortened because too many were waiting', boundary),
      contextOutro: untrustedEnd(boundary),
    };
  };
}

/** For example `It is Friday, 2026-01-02 10:30 (Europe/Berlin).` */
function createTimeText(timeZone: string): (now: number) => string {
  const day = new Intl.DateTimeFormat('en', { timeZone, weekday: 'long' });
  // The Swedish locale writes dates and times in ISO format.
  const stamp = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'short' });
  let said = { minute: -1, text: '' };
  return (now) => {
    const minute = Math.floor(now / 60_000);
    if (minute !== said.minute)
      said = { minute, text: `It is ${day.format(now)}, ${stamp.format(now)} (${timeZone}).` };
    return said.text;
  };
}

/** How many of an earlier version's large images are kept after they were made smaller. */
const keptImages = 20;

/**
 * Loads the images that `binary` parts name, only from the media folder, wherever it is now. Those stored by an earlier
 * version may be too large for a request that contains many.
 */
export function imagesIn(mediaDir: string, fitImage: FitLargeImage): LoadImage {
  const made = new Map<string, FitImage | 'unfit'>();
  return async (name) => {
    if (readMediaName(name) === undefined) return undefined;
    const known = made.get(name);
    if (known !== undefined) return known;
    const path = join(mediaDir, name);
    try {
      const { size } = await stat(path);
      if (size > maxLargeImageBytes) return 'unfit';
      const bytes = await readFile(path);
      const image = (await fitImage(bytes)) ?? 'unfit';
      if (image === 'unfit' || image.base64.length < bytes.length) keep(made, name, image);
      return image;
    } catch {
      // Removed by upkeep: the accompanying text still names the file.
      return undefined;
    }
  };
}

function keep(made: Map<string, FitImage | 'unfit'>, name: string, image: FitImage | 'unfit'): void {
  made.set(name, image);
  const [oldest] = made.keys();
  if (made.size > keptImages && oldest !== undefined) made.delete(oldest);
}

/** Loads the PDFs that `binary` parts name, only from the media folder. */
export function documentsIn(mediaDir: string): LoadDocument {
  return async (name) => {
    if (readMediaName(name) === undefined) return undefined;
    return await readFile(join(mediaDir, name), 'base64');
  };
}
