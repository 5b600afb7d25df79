/** Types of images that clients show; any other file is only offered. An SVG image isn't among them, since it can contain scripts. */
export const shownImages = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/**
 * Formats a file's size for people.
 * @param {number} bytes
 */
export function sizeText(bytes) {
  if (bytes < 1_000) return bytes === 1 ? '1 byte' : `${bytes} bytes`;
  if (bytes < 999_500) return `${Math.round(bytes / 1_000)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Takes the place of a file whose copy was removed. */
export const goneText = 'no longer kept';
