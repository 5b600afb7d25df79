import type { AttachmentRef } from '#contracts/attachment.ts';
import { ParleyError } from '#contracts/errors.ts';
import { networkReason, readRefusal } from './failures.ts';

export type MediaDeps = {
  readonly apiRoot: string;
  readonly token: string;
  readonly getFile: (
    fileId: string,
    signal: AbortSignal,
  ) => Promise<{ readonly file_path?: string; readonly file_size?: number }>;
};

/**
 * Streams a file, at most `maxBytes` of it. The size is checked where Telegram states it and again as
 * the bytes come, since neither the sender nor a header has to be right. No error holds the address:
 * it contains the token.
 */
export async function* fetchMedia(
  deps: MediaDeps,
  wanted: { readonly ref: AttachmentRef; readonly maxBytes: number; readonly signal: AbortSignal },
): AsyncIterable<Uint8Array> {
  const { ref, maxBytes, signal } = wanted;
  if ((ref.sizeBytes ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const path = await locate(deps, wanted);
  const ending = new AbortController();
  try {
    const response = await open(deps, path, AbortSignal.any([signal, ending.signal]));
    if (Number(response.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes);
    let seen = 0;
    for await (const chunk of response.body ?? []) {
      seen += chunk.length;
      if (seen > maxBytes) throw tooLarge(maxBytes);
      yield chunk;
    }
  } catch (error) {
    throw error instanceof ParleyError ? error : unavailable(networkReason(error), error);
  } finally {
    ending.abort(); // Also when the reader stops early: the rest must not go on arriving.
  }
}

async function locate(
  deps: MediaDeps,
  {
    ref,
    maxBytes,
    signal,
  }: { readonly ref: AttachmentRef; readonly maxBytes: number; readonly signal: AbortSignal },
): Promise<string> {
  try {
    const { file_path: path, file_size: size = 0 } = await deps.getFile(ref.ref, signal);
    if (size > maxBytes) throw tooLarge(maxBytes);
    if (path === undefined) throw unavailable('Telegram named no path for the file');
    return path;
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    const refusal = readRefusal(error);
    if (refusal === undefined) throw unavailable(networkReason(error), error);
    if (/file is too big/i.test(refusal.description)) throw tooLarge(maxBytes);
    throw unavailable(refusal.description);
  }
}

async function open({ apiRoot, token }: MediaDeps, path: string, signal: AbortSignal): Promise<Response> {
  const response = await fetch(`${apiRoot}/file/bot${token}/${path}`, { signal, redirect: 'error' });
  if (!response.ok) throw unavailable(`Telegram answered ${response.status} to the download`);
  return response;
}

function tooLarge(maxBytes: number): ParleyError {
  return new ParleyError('media_too_large', `the file is larger than ${maxBytes} bytes`);
}

function unavailable(why: string, cause?: unknown): ParleyError {
  return new ParleyError('media_unavailable', `the file could not be fetched: ${why}`, {
    cause,
    retry: { kind: 'later', afterMs: 2000 },
  });
}
