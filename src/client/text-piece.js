/**
 * Puts a piece into the text that is being written: what was there and behind it is void. Returns undefined if something
 * before it is missing.
 * @param {string} written
 * @param {{ readonly at: number, readonly text: string }} piece
 */
export function withPiece(written, { at, text }) {
  return at > written.length ? undefined : written.slice(0, at) + text;
}
