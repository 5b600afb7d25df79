/** Longest beginning and end that are kept of an output, in bytes; both fit into one result. */
const headBytes = 10 * 1024;
const tailBytes = 18 * 1024;

/** Keeps the beginning and the end of an output, however long it is. */
export class OutputBuffer {
  #head = Buffer.alloc(0);
  #tail = Buffer.alloc(0);
  #size = 0;

  /** Bytes added so far. */
  get size(): number {
    return this.#size;
  }

  add(chunk: Buffer): void {
    this.#size += chunk.length;
    const room = headBytes - this.#head.length;
    if (room > 0) this.#head = Buffer.concat([this.#head, chunk.subarray(0, room)]);
    // A copy: a part of the chunk would keep all of it in memory.
    this.#tail = Buffer.concat([this.#tail, chunk.subarray(Math.max(0, room)).subarray(-tailBytes)]);
    if (this.#tail.length > 2 * tailBytes) this.#tail = Buffer.from(this.#tail.subarray(-tailBytes));
  }

  /** Returns the output; what is left out of a long one is named in its middle. */
  text(): string {
    const tail = this.#tail.subarray(-tailBytes);
    const left = this.#size - this.#head.length - tail.length;
    if (left === 0) return Buffer.concat([this.#head, tail]).toString();
    return `${this.#head.toString()}\n[${left} bytes left out here]\n${tail.toString()}`;
  }
}
