import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { cappedDownload, type DownloadRequest, unavailable } from '#channel-kit/capped-download.ts';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { SendRequest } from './api.generated.ts';
import type { SignalApi } from './api.ts';
import { capabilities } from './capabilities.ts';
import { networkReason } from './failures.ts';
import type { OutgoingFile } from './outbound.ts';

/** Returns the path of an attachment on the server. */
export function attachmentPath(ref: AttachmentRef): string {
  return `/v1/attachments/${encodeURIComponent(ref.ref)}`;
}

/** Streams an attachment. */
export function fetchMedia(api: Pick<SignalApi, 'open'>, wanted: DownloadRequest): AsyncIterable<Uint8Array> {
  const begin = async (signal: AbortSignal) => {
    const { statusCode, headers, body } = await api.open(attachmentPath(wanted.ref), signal);
    if (statusCode !== 200) throw unavailable(`the server answered ${statusCode}`);
    return { statedBytes: headers['content-length']?.toString(), body };
  };
  return cappedDownload({ open: begin, networkReason }, wanted);
}

const largestFileBytes = capabilities.media?.maxBytes ?? 0;

/** Returns why the files can't be sent; undefined if they can. */
export async function filesProblem(files: readonly OutgoingFile[]): Promise<string | undefined> {
  let totalBytes = 0;
  try {
    for (const { path } of files) {
      await using file = await open(path, 'r');
      const entry = await file.stat();
      if (!entry.isFile()) return 'the file to send isn’t a regular file';
      if (entry.size === 0) return 'the file to send is empty';
      totalBytes += entry.size;
    }
  } catch {
    return 'the file to send cannot be read'; // Signal needn't know why a local file is gone.
  }
  if (totalBytes <= largestFileBytes) return undefined;
  return `the file to send is larger than ${largestFileBytes} bytes`;
}

/** Yields the body of a send with files, none of which is ever in memory as a whole. */
export async function* bodyWithFiles(
  request: SendRequest,
  files: readonly OutgoingFile[],
): AsyncIterable<Uint8Array> {
  const head = JSON.stringify({ ...request, base64_attachments: [] });
  yield Buffer.from(head.slice(0, -']}'.length));
  for (const [index, file] of files.entries()) {
    const opening = JSON.stringify(file.dataUri).slice(0, -'"'.length);
    yield Buffer.from(index === 0 ? opening : `,${opening}`);
    yield* base64Of(file);
    yield Buffer.from('"');
  }
  yield Buffer.from(']}');
}

async function* base64Of({ path }: OutgoingFile): AsyncIterable<Uint8Array> {
  let rest = Buffer.alloc(0);
  for await (const chunk of createReadStream(path)) {
    const bytes = Buffer.concat([rest, chunk]);
    // In multiples of three bytes, so that the joined base64 pieces are the base64 of the file.
    const end = bytes.length - (bytes.length % 3);
    yield Buffer.from(bytes.toString('base64', 0, end));
    rest = bytes.subarray(end);
  }
  yield Buffer.from(rest.toString('base64'));
}
