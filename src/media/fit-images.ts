/** Makes images smaller that a tool returns or that the history holds, so that every request can contain them. */
import type { ToolOutput } from '#contracts/tool.ts';
import { type FitImage, fitImageBytes, maxImageBytes, readImageHead } from '../agent/fit-image.ts';
import type { RunMediaJob } from './media-pool.ts';

/** Returns the image as a provider accepts it, smaller if it has to be; undefined if it can't be read. */
export type FitLargeImage = (bytes: Buffer, signal?: AbortSignal) => Promise<FitImage | undefined>;

/** The longest side of an image in the history, pixels: what models see of a larger one anyway. */
export const maxImageSide = 1_568;
/** Most bytes of an image that is made smaller. */
export const maxLargeImageBytes = 20 * 1024 * 1024;

/** The longest side of images that a request with more than twenty of them may have, pixels (Anthropic). */
export const maxOldImageSide = 2_000;

/** Creates the function; images whose sides are all within `maxSide` stay as they are. */
export function createImageFitter(run: RunMediaJob, { maxSide = maxImageSide } = {}): FitLargeImage {
  return async (bytes, signal = new AbortController().signal) => {
    const head = readImageHead(bytes);
    if (head === undefined) return undefined;
    const isSmall = Math.max(head.width, head.height) <= maxSide && bytes.length <= maxImageBytes;
    if (isSmall) return fitImageBytes(bytes);
    const result = await run({ kind: 'image', source: new Uint8Array(bytes), maxSide: maxImageSide }, signal);
    if (result.kind === 'image') return fitImageBytes(Buffer.from(result.bytes));
    const isAbsent = result.kind === 'problem' && result.problem === 'absent';
    return isAbsent ? fitImageBytes(bytes) : undefined;
  };
}

/** Makes a tool's images smaller. Anything else that it returns stays for the loop to judge. */
export async function fitImagesOf(
  fitImage: FitLargeImage,
  output: ToolOutput,
  signal: AbortSignal,
): Promise<ToolOutput> {
  if (!Array.isArray(output.images)) return output;
  const images = await Promise.all(
    output.images.slice(0, maxImages).map(async (image: unknown) => {
      const { base64 } = (image ?? {}) as { readonly base64?: unknown };
      if (typeof base64 !== 'string') return image;
      return (await fitImage(Buffer.from(base64, 'base64'), signal)) ?? image;
    }),
  );
  return {
    ...output,
    images: [...images, ...output.images.slice(maxImages)] as NonNullable<ToolOutput['images']>,
  };
}

/** The loop keeps fewer. */
const maxImages = 8;
