import type { AttachmentRef } from '#contracts/attachment.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { FaultDetail } from './channel-fault.ts';
import { remoteSize } from './remote-number.ts';

/** The attachment to download and its limit. */
export type DownloadRequest = {
  readonly ref: AttachmentRef;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
};

export type Download = {
  /** The length the server announced; null or undefined if none. */
  readonly statedBytes: string | null | undefined;
  readonly body: AsyncIterable<Uint8Array> | null;
};

export type Source = {
  /** Begins the download, which ends with the signal. Throws ParleyError, or what its client throws. */
  open(signal: AbortSignal): Promise<Download>;
  /** Why there was no answer, without addresses: they may hold a token. */
  networkReason(error: unknown): string;
  /** Whether a file that can't be had now may be had later. True when absent. */
  readonly mayReturn?: boolean;
  /** How long nothing may come, ms. 30 s when absent. */
  readonly silenceMs?: number;
  /** How long all of it may take, ms. 5 min when absent. */
  readonly limitMs?: number;
};

const usualSilenceMs = 30_000;
const usualLimitMs = 5 * 60_000;
/** Between two attempts while the network is away, ms. */
const outagePauseMs = 2_000;

/**
 * Streams a file, at most `maxBytes` of it. The size is checked where the sender and the server state it
 * and again as the bytes come, since none of them has to be right. One of which nothing comes for long is given up,
 * since a connection whose other end is gone is silent for ever, and so is one that comes byte by byte. Throws
 * ParleyError `media_too_large` or `media_unavailable`.
 */
export async function* cappedDownload(
  source: Source,
  { ref, maxBytes, signal }: DownloadRequest,
): AsyncIterable<Uint8Array> {
  const { open, networkReason, mayReturn = true } = source;
  if ((ref.sizeBytes ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const ending = new AbortController();
  const silence = setTimeout(() => ending.abort(), source.silenceMs ?? usualSilenceMs);
  const limit = setTimeout(() => ending.abort(), source.limitMs ?? usualLimitMs);
  try {
    const { statedBytes, body } = await open(AbortSignal.any([signal, ending.signal]));
    if ((remoteSize(statedBytes) ?? 0) > maxBytes) throw tooLarge(maxBytes);
    let seen = 0;
    for await (const chunk of body ?? []) {
      seen += chunk.length;
      if (seen > maxBytes) throw tooLarge(maxBytes);
      yield chunk;
      silence.refresh();
    }
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    throw unavailable(networkReason(error), { cause: error, afterMs: mayReturn ? outagePauseMs : undefined });
  } finally {
    clearTimeout(silence);
    clearTimeout(limit);
    ending.abort(); // Also when the reader stops early: the rest must not go on arriving.
  }
}

/** The fault of a file above the limit. */
export function tooLarge(maxBytes: number): ParleyError {
  return new ParleyError('media_too_large', `the file is larger than ${maxBytes} bytes`);
}

/**
 * The fault of a file that could not be fetched; it may be tried again. `why` must hold no address. `afterMs`: the wait
 * after which the network may have it, where it was away or asks for one.
 */
export function unavailable(why: string, { afterMs, cause }: FaultDetail = {}): ParleyError {
  const retry = { kind: 'later', ...(afterMs === undefined ? {} : { afterMs }) } as const;
  return new ParleyError('media_unavailable', `the file could not be fetched: ${why}`, { cause, retry });
}
