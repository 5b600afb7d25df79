/** Makes an image smaller. Only threads load this: decoding takes a fifth of a second for a phone's photo. */
import type { Sharp, SharpOptions } from 'sharp';
import { type ReadProblem, UnreadableFile } from './read-problem.ts';

/** An image that fits, in a type that every provider accepts. */
export type BoundImage = { readonly mimeType: string; readonly bytes: Uint8Array<ArrayBuffer> };

/** Refused before anything is decoded; phones make photos of up to 50 megapixels. */
const maxPixels = 50_000_000;
/** The same for images that are decoded as a whole, not line by line. */
const maxWholePixels = 16_000_000;
const maxSeconds = 8;

/** Reads the image, whose type was sniffed, and returns it at most `maxSide` pixels wide and high. */
export async function boundImage(source: string | Uint8Array, maxSide: number): Promise<BoundImage> {
  const open = await loadSharp();
  try {
    const image = open(source, { limitInputPixels: maxPixels, failOn: 'error', sequentialRead: true });
    const { hasAlpha, format, isProgressive, width, height } = await image.metadata();
    const isByLine = (format === 'jpeg' || format === 'png') && !isProgressive;
    if (!isByLine && width * height > maxWholePixels) throw new UnreadableFile('heavy');
    // The camera's orientation is applied, since the copy says nothing about it.
    const small = image
      .timeout({ seconds: maxSeconds })
      .autoOrient()
      .resize({ width: maxSide, height: maxSide, fit: 'inside', withoutEnlargement: true });
    const written = hasAlpha ? small.webp({ quality: 85 }) : small.jpeg({ quality: 85 });
    const bytes = new Uint8Array(await written.toBuffer());
    return { mimeType: hasAlpha ? 'image/webp' : 'image/jpeg', bytes };
  } catch (error) {
    if (error instanceof UnreadableFile) throw error;
    throw new UnreadableFile(problemOf(error), { cause: error });
  }
}

type OpenImage = (source: string | Uint8Array, options: SharpOptions) => Sharp;

async function loadSharp(): Promise<OpenImage> {
  try {
    const { default: sharp } = await import('sharp');
    sharp.cache(false);
    sharp.concurrency(1);
    // Only these are read whatever the bytes turn out to be; it could also render SVG, and more.
    sharp.block({ operation: ['VipsForeignLoad'] });
    sharp.unblock({ operation: ['Png', 'Jpeg', 'Nsgif', 'Webp'].map((type) => `VipsForeignLoad${type}`) });
    return sharp;
  } catch (error) {
    throw new UnreadableFile('absent', { cause: error });
  }
}

function problemOf(error: unknown): ReadProblem {
  const isHeavy = error instanceof Error && /pixel limit|timeout/i.test(error.message);
  return isHeavy ? 'heavy' : 'damaged';
}
