import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Platform } from './platform.ts';
import { linkMark } from './wire.ts';

/** Serves an attachment by its signed link; a wrong or expired one is a plain 404, as on the CDN. */
export async function download({ world, now }: Platform, url: URL, response: ServerResponse): Promise<void> {
  const file = world.files.get(url.pathname.split('/')[3] ?? '');
  const expires = url.searchParams.get('ex') ?? '';
  const isSigned = file !== undefined && url.searchParams.get('hm') === linkMark(file.id, expires);
  if (!isSigned || Number.parseInt(expires, 16) * 1000 < now()) {
    response.writeHead(404, { 'content-type': 'text/plain' });
    response.end('This content is no longer available.');
    return;
  }
  response.writeHead(200, { 'content-type': file.mimeType });
  // A client that hangs up ends the stream; it may, and that isn't this server's fault.
  await pipeline(Readable.from(file.bytes()), response).catch(() => undefined);
}
