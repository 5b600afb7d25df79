/** Text that is read from a file, up to a limit. */
export interface TextCollector {
  /** Appends text. Returns false once no more fits, so that reading can stop. */
  add(text: string): boolean;
  readonly isFull: boolean;
  result(): { readonly text: string; readonly isCut: boolean };
}

/** Creates a collector of `maxBytes` of UTF-8. */
export function createTextCollector(maxBytes: number): TextCollector {
  const pieces: string[] = [];
  let room = maxBytes;
  let isFull = false;
  const buffer = new Uint8Array(maxBytes);
  return {
    add: (text) => {
      if (isFull) return false;
      const { read, written } = new TextEncoder().encodeInto(text, buffer.subarray(0, room));
      pieces.push(text.slice(0, read));
      room -= written;
      isFull = read < text.length;
      return !isFull;
    },
    get isFull() {
      return isFull;
    },
    result: () => ({ text: pieces.join(''), isCut: isFull }),
  };
}
