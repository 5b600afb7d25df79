/**
 * Decides which images a provider accepts. A rejected one would recur in every later request of the conversation, so
 * they are checked here, by their bytes: type, size, width and height.
 */

/** An image that every provider accepts. */
export type FitImage = { readonly mimeType: string; readonly base64: string };

/** Anthropic rejects an image whose base64 is longer. */
const maxImageLength = 5 * 1024 * 1024;
/** Anthropic also rejects wider or higher images, pixels. */
export const maxSide = 8_000;
/** Width and height are within this much of the base64; a camera's metadata comes first. A multiple of 4. */
const headLength = 400_000;

/** Returns the image with the type found in its bytes, or undefined if no provider accepts it. */
export function fitImage(base64: unknown): FitImage | undefined {
  if (typeof base64 !== 'string' || base64.length > maxImageLength) return undefined;
  if (!isBase64(base64)) return undefined;
  const found = readImageHead(Buffer.from(base64.slice(0, headLength), 'base64'));
  const isFit = found !== undefined && found.width <= maxSide && found.height <= maxSide;
  return isFit && found.width > 0 && found.height > 0 ? { mimeType: found.mimeType, base64 } : undefined;
}

/** A single pattern for all of it would exhaust the stack on a long text. */
function isBase64(text: string): boolean {
  const padding = /={0,2}$/.exec(text.slice(-4))?.[0].length ?? 0;
  const firstOther = text.search(/[^A-Za-z0-9+/]/);
  return text !== '' && text.length % 4 === 0 && (firstOther === -1 || firstOther === text.length - padding);
}

/** Larger files can't contain an image that fits. */
export const maxImageBytes = (maxImageLength / 4) * 3;

/** Does the same for the bytes of a file. */
export function fitImageBytes(bytes: Buffer): FitImage | undefined {
  return bytes.length > maxImageBytes ? undefined : fitImage(bytes.toString('base64'));
}

type ImageHead = { readonly mimeType: string; readonly width: number; readonly height: number };

/** Reads type, width and height from an image's first bytes, without decoding it; undefined for any other file. */
export function readImageHead(bytes: Buffer): ImageHead | undefined {
  const head = bytes.subarray(0, 16).toString('latin1');
  try {
    if (head.startsWith('\x89PNG\r\n\x1a\n') && head.slice(12) === 'IHDR')
      return { mimeType: 'image/png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
    if (head.startsWith('GIF87a') || head.startsWith('GIF89a'))
      return { mimeType: 'image/gif', width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
    if (head.startsWith('\xff\xd8\xff')) return { mimeType: 'image/jpeg', ...jpegSize(bytes) };
    if (head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP')
      return { mimeType: 'image/webp', ...webpSize(bytes, head.slice(12)) };
  } catch {
    // The bytes end before the image's dimensions.
  }
  return undefined;
}

type Size = Pick<ImageHead, 'width' | 'height'>;
const noSize: Size = { width: 0, height: 0 };

/** Reads the size from the first frame header; every segment before it states its own length. */
function jpegSize(bytes: Buffer): Size {
  for (let at = 2; bytes.readUInt8(at) === 0xff; ) {
    const marker = bytes.readUInt8(at + 1);
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (isFrame) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    // 0xff may be repeated before a marker.
    at += marker === 0xff ? 1 : 2 + bytes.readUInt16BE(at + 2);
  }
  return noSize;
}

function webpSize(bytes: Buffer, chunk: string): Size {
  if (chunk === 'VP8X') return { width: 1 + bytes.readUIntLE(24, 3), height: 1 + bytes.readUIntLE(27, 3) };
  if (chunk === 'VP8L') {
    const bits = bytes.readUInt32LE(21);
    return { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) };
  }
  if (chunk !== 'VP8 ') return noSize;
  return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
}
