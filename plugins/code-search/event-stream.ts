export type StreamEvent = {
  readonly name: string;
  /** Absent if it was longer than `maxEventLength`. */
  readonly data?: string;
};

/** Longest data of an event that is kept, UTF-16 units. */
export const maxEventLength = 1024 * 1024;

/**
 * Reads server-sent events as they arrive. An event that is too long costs itself, not the ones behind it: repositories
 * contain files that are one line of megabytes. An event that the end cuts off is dropped.
 */
export async function* readEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  const event = new EventInProgress();
  for await (const chunk of chunks) {
    const text = decoder.decode(chunk, { stream: true });
    let start = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      event.add(text.slice(start, end));
      const whole = event.endLine();
      if (whole !== undefined) yield whole;
      start = end + 1;
    }
    event.add(text.slice(start));
  }
}

class EventInProgress {
  /** The current line; joined once, since it may arrive in very many pieces. */
  #pieces: string[] = [];
  #lineLength = 0;
  #name = '';
  #data: string[] = [];
  #length = 0;

  add(piece: string): void {
    this.#lineLength += piece.length;
    this.#length += piece.length;
    if (this.#length <= maxEventLength) this.#pieces.push(piece);
  }

  /** Ends the line. Returns the event if that was its last one: an empty line, with or without a carriage return. */
  endLine(): StreamEvent | undefined {
    const line = this.#pieces.join('').replace(/\r$/, '');
    const isLast = this.#lineLength <= 1;
    this.#pieces = [];
    this.#lineLength = 0;
    if (isLast) return this.#end();
    const [, field, value = ''] = /^(event|data): ?(.*)$/s.exec(line) ?? [];
    if (field === 'event') this.#name = value;
    if (field === 'data') this.#data.push(value);
    return undefined;
  }

  #end(): StreamEvent | undefined {
    const [name, data, length] = [this.#name, this.#data, this.#length];
    this.#name = '';
    this.#data = [];
    this.#length = 0;
    if (name === '' && data.length === 0) return undefined;
    return length > maxEventLength ? { name } : { name, data: data.join('\n') };
  }
}
