import type { CallEnd } from '#contracts/call-ledger.ts';
import type { ModelEvent, Usage } from '#contracts/model.ts';

/** Returns how much of the answer an event passes on, UTF-8 bytes. */
export function bytesIn(event: ModelEvent): number {
  switch (event.type) {
    case 'content_delta':
      return Buffer.byteLength(event.text);
    case 'thinking_delta':
      return Buffer.byteLength(event.thinking);
    case 'tool_use_delta':
      return Buffer.byteLength(event.json);
    case 'tool_use_start':
      return Buffer.byteLength(event.name);
    default:
      return 0;
  }
}

/** Adds up what has arrived of an answer, to charge it by that if it is stopped. */
export class StreamedBytes {
  #passedOn = 0;
  #held = 0;
  #prompt: Usage | undefined;

  read(event: ModelEvent): void {
    this.#passedOn += bytesIn(event);
    if (event.type !== 'progress') return;
    this.#held = event.heldBytes;
    this.#prompt = event.prompt ?? this.#prompt;
  }

  get written(): number {
    return this.#passedOn + this.#held;
  }

  /** Returns the end of a call that is stopped here. */
  stopped(): CallEnd {
    return { state: 'stopped', prompt: this.#prompt, writtenBytes: this.written };
  }
}
