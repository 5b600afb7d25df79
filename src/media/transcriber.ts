/** Has voice messages written down, by a server that speaks OpenAI's `/audio/transcriptions`, or by a local model. */

import { createLimit } from '#channel-kit/limit.ts';

/** A voice message on disk, with its sniffed type. */
export type VoiceFile = { readonly path: string; readonly mimeType: string };

/** Empty if nothing was said. */
export type Transcription =
  | { readonly kind: 'heard'; readonly text: string }
  | { readonly kind: 'failed'; readonly reason: string };

/** Writes down what is said. */
export interface Transcriber {
  /** Longest time for one message, ms. */
  readonly waitMs: number;
  /** Never throws: a message that can't be written down costs only its words. */
  transcribe(voice: VoiceFile, signal: AbortSignal): Promise<Transcription>;
}

/** Longest transcript, UTF-16 units; half an hour of speech has 30,000. */
const maxLength = 50_000;
/** A remark of the model instead of words, such as `[BLANK_AUDIO]`, `(silence)` or `♪`. */
const remark = /[[(*][^\])*\n]{0,80}[\])*]|[♪♫]+/g;

/** Returns the words of a transcript; empty if it consists only of remarks. */
export function spokenWords(transcript: string): string {
  const text = transcript.trim();
  return /[\p{L}\p{N}]/u.test(text.replaceAll(remark, '')) ? text.slice(0, maxLength).toWellFormed() : '';
}

/** Makes calls take turns: servers work on one or a few at a time, and answer the rest late or never. */
export function limitCalls(transcriber: Transcriber, maxAtOnce: number): Transcriber {
  const limit = createLimit(maxAtOnce);
  return {
    waitMs: transcriber.waitMs,
    transcribe: (voice, signal) => limit(() => transcriber.transcribe(voice, signal)),
  };
}
