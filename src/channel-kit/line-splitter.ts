const newline = 0x0a;

/** Cuts a stream of bytes into lines. */
export type LineSplitter = {
  /** The lines that end in this chunk, without their ends. */
  push(chunk: Buffer): readonly string[];
  /** The size of the line that is begun, bytes. */
  begunBytes(): number;
};

/**
 * Splits at line feeds only, and before decoding, so that no character is cut. readline also splits at U+2028 and
 * U+2029, which JSON leaves as they are.
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
