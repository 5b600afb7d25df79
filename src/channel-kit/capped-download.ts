import type { AttachmentRef } from '#contracts/attachment.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { FaultDetail } from './network-fault.ts';
import { remoteSize } from './remote-number.ts';

/** The attachment to download and its limit. */
export type DownloadRequest = {
  readonly ref: AttachmentRef;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
};

export type Download = {
  /** The length that the server announced; null or undefined if none. */
  readonly statedBytes: string | null | undefined;
  readonly body: AsyncIterable<Uint8Array> | null;
};

export type Source = {
  /** Starts the download, which ends with the signal. Throws ParleyError, or what its client throws. */
  open(signal: AbortSignal): Promise<Download>;
  /** Returns why there was no answer, without addresses, which may contain a token. */
  networkReason(error: unknown): string;
  /** Whether a file that isn't available now may be later. Default: true. */
  readonly mayReturn?: boolean;
  /** Longest time without any bytes, ms. Default: 30 s. */
  readonly silenceMs?: number;
  /** Longest total time, ms. Default: 5 min. */
  readonly limitMs?: number;
};

const usualSilenceMs = 30_000;
const usualLimitMs = 5 * 60_000;
/** Pause between two attempts while the network is unreachable, ms. */
const outagePauseMs = 2_000;

/**
 * Streams a file of at most `maxBytes`. It checks the sizes stated by the sender and the server, and counts the bytes
 * as they arrive, since the stated sizes may be wrong. A silent download is given up, since a connection whose other
 * end is gone stays silent forever, and so is one that trickles in byte by byte. Throws ParleyError
 * `media_too_large` or `media_unavailable`.
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
    ending.abort(); // Also when the reader stops early, so that the rest doesn't keep arriving.
  }
}

/** Creates the fault for a file over the limit. */
export function tooLarge(maxBytes: number): ParleyError {
  return new ParleyError('media_too_large', `the file is larger than ${maxBytes} bytes`);
}

/**
 * Creates the fault for a file that couldn't be fetched; fetching may be retried. `why` must not contain an address.
 * `afterMs`: the wait after which the file may be available, if the network was unreachable or asks for a wait.
 */
export function unavailable(why: string, { afterMs, cause }: FaultDetail = {}): ParleyError {
  const retry = { kind: 'later', ...(afterMs === undefined ? {} : { afterMs }) } as const;
  return new ParleyError('media_unavailable', `the file could not be fetched: ${why}`, { cause, retry });
}
