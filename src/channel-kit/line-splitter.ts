const newline = 0x0a;

/** Splits a stream of bytes into lines. */
export type LineSplitter = {
  /** Returns the lines that end in this chunk, without line feeds. */
  push(chunk: Buffer): readonly string[];
  /** Returns the size of the unfinished line, bytes. */
  begunBytes(): number;
};

/**
 * Splits at line feeds only, and before decoding, so that no character is cut. readline would also split at U+2028
 * and U+2029, which JSON doesn't escape.
 */
export function createLineSplitter(): LineSplitter {
  let begun: Buffer[] = [];
  let bytes = 0;
  return {
    push: (chunk) => {
      const lines: string[] = [];
      let from = 0;
      for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, from)) {
        lines.push(Buffer.concat([...begun, chunk.subarray(from, end)]).toString());
        begun = [];
        bytes = 0;
        from = end + 1;
      }
      begun.push(chunk.subarray(from));
      bytes += chunk.length - from;
      return lines;
    },
    begunBytes: () => bytes,
  };
}
