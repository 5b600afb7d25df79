import { cappedDownload, type DownloadRequest, tooLarge, unavailable } from '#channel-kit/capped-download.ts';
import { refuseRedirect } from '#channel-kit/redirects.ts';
import { remoteSize } from '#channel-kit/remote-number.ts';
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

/** Streams a file. No error contains the address, because the token is part of it. */
export function fetchMedia(deps: MediaDeps, wanted: DownloadRequest): AsyncIterable<Uint8Array> {
  const begin = async (signal: AbortSignal) => {
    const { headers, body } = await open(deps, await locate(deps, { ...wanted, signal }), signal);
    return { statedBytes: headers.get('content-length'), body };
  };
  return cappedDownload({ open: begin, networkReason }, wanted);
}

async function locate(deps: MediaDeps, { ref, maxBytes, signal }: DownloadRequest): Promise<string> {
  try {
    const { file_path: path, file_size: size } = await deps.getFile(ref.ref, signal);
    if ((remoteSize(size) ?? 0) > maxBytes) throw tooLarge(maxBytes);
    if (path === undefined) throw unavailable('Telegram gave no path for the file');
    return path;
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    const refusal = readRefusal(error);
    if (refusal === undefined) throw error;
    if (/file is too big/i.test(refusal.description)) throw tooLarge(maxBytes);
    throw unavailable(refusal.description, { afterMs: refusal.askedWaitMs });
  }
}

async function open({ apiRoot, token }: MediaDeps, path: string, signal: AbortSignal): Promise<Response> {
  const url = `${apiRoot}/file/bot${token}/${path}`;
  const response = await fetch(url, { signal, redirect: 'manual' });
  refuseRedirect(url, { status: response.status, location: response.headers.get('location') });
  if (!response.ok) throw unavailable(`Telegram answered ${response.status} to the download`);
  return response;
}
