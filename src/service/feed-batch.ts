import type { FeedEvent } from '#contracts/feed.ts';
import type { FeedFrame } from '#contracts/feed-frame.ts';
import type { FeedPlace } from './feed-place.ts';

/** Frames that a reader gets at once. Readers with the same filter share it. */
export type FeedBatch = readonly EncodedFrame[];

/** A frame with its JSON, and the place after it if it leads to one. */
export type EncodedFrame = {
  readonly frame: FeedFrame;
  readonly json: string;
  readonly place: FeedPlace | undefined;
};

export function encode(frame: FeedFrame, place?: FeedPlace): EncodedFrame {
  return { frame, json: JSON.stringify(frame), place };
}

type PendingFrame = { readonly frame: FeedFrame; readonly place: FeedPlace | undefined };

/** Frames that no reader has yet. Pieces of a text become one, so a slow pace makes fewer frames, not later ones. */
export class PendingFrames {
  #frames: PendingFrame[] = [];

  add(frame: FeedFrame, place?: FeedPlace): void {
    const text = textIn(frame);
    if (text === undefined || !this.#lengthen(text)) this.#frames.push({ frame, place });
  }

  /** Removes and returns all. */
  take(): FeedBatch {
    const taken = this.#frames.map(({ frame, place }) => encode(frame, place));
    this.#frames = [];
    return taken;
  }

  /** Adds a piece to the one that it continues, unless something else has come after that. */
  #lengthen(piece: TextEvent): boolean {
    for (let index = this.#frames.length - 1; index >= 0; index -= 1) {
      const earlier = textIn(this.#frames[index]?.frame);
      if (earlier === undefined) return false;
      if (earlier.of !== piece.of || earlier.runId !== piece.runId) continue;
      if (earlier.at + earlier.text.length !== piece.at) return false;
      const event = { ...earlier, text: earlier.text + piece.text };
      this.#frames[index] = { frame: { type: 'event', event }, place: undefined };
      return true;
    }
    return false;
  }
}

type TextEvent = Extract<FeedEvent, { kind: 'text' }>;

function textIn(frame: FeedFrame | undefined): TextEvent | undefined {
  return frame?.type === 'event' && frame.event.kind === 'text' ? frame.event : undefined;
}
