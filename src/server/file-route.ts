/**
 * Serves the files that the agent has sent, as they were when the part was stored. What a file contains may be anybody's
 * words, so a browser shows only images of a few types, and runs nothing of any.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import { cleanFileName } from '#channel-kit/clean-text.ts';
import { shownImages } from '../client/file-facts.js';
import { readMediaName } from '../inbound/media.ts';
import type { Store } from '../store/base/command.ts';
import { findSentFile, type StoredFile } from '../store/reads/find-sent-file.ts';
import { type ApiCall, serveCall } from './api-call.ts';
import { mayRead } from './read-access.ts';
import { type Refusal, refuseReadably } from './request-auth.ts';

export type FileRouteDeps = {
  readonly store: Pick<Store, 'read'>;
  readonly mediaDir: string;
};

const call = {
  method: 'GET',
  path: '/api/file',
  summary:
    'Returns the file of a message that the agent has sent. An image has its own type, anything else this one',
  access: 'owner',
  scope: ['read', 'chat'],
  input: z.strictObject({ message: z.string().min(1).max(256).describe("The message's `messageId`") }),
  answer: z.string().meta({ format: 'binary' }),
  answerType: 'application/octet-stream',
  refusals: ['not_found'],
} as const satisfies ApiCall;

const notFound: Refusal = {
  status: 404,
  code: 'not_found',
  text: 'There is no such file, or you may not read its conversation.',
};
const gone: Refusal = { status: 404, code: 'not_found', text: 'This file is no longer kept.' };

/** Adds the route. */
export function mountFiles(app: FastifyInstance, { store, mediaDir }: FileRouteDeps): void {
  serveCall(app, call, async ({ message }, { request, reply }) => {
    const file = await store.read(findSentFile, { id: message });
    if (file === undefined || !mayRead(request.identity, file.laneKey))
      return refuseReadably(reply, notFound);
    const opened = await openStored(mediaDir, file.path);
    if (opened === undefined) return refuseReadably(reply, gone);
    return sendFile(reply, file, opened);
  });
}

type OpenedFile = { readonly handle: FileHandle; readonly sizeBytes: number };

/** Opens a copy in the media folder, never another file and never through a link. Undefined if it is gone. */
async function openStored(mediaDir: string, name: string): Promise<OpenedFile | undefined> {
  if (readMediaName(name) === undefined) return undefined;
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const handle = await open(join(mediaDir, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => undefined);
  const stats = await handle?.stat();
  if (handle && stats?.isFile()) return { handle, sizeBytes: stats.size };
  await handle?.close();
  return undefined;
}

function sendFile(
  reply: FastifyReply,
  { name, mimeType }: StoredFile,
  { handle, sizeBytes }: OpenedFile,
): FastifyReply {
  const isShown = shownImages.has(mimeType);
  return reply
    .header('content-security-policy', "default-src 'none'; sandbox")
    .header('content-disposition', `${isShown ? 'inline' : 'attachment'}; ${fileNameOf(name)}`)
    .header('content-length', sizeBytes)
    .type(isShown ? mimeType : 'application/octet-stream')
    .send(handle.createReadStream());
}

/** Returns the name as RFC 6266 has it: in ASCII, and in full for all browsers of today. */
function fileNameOf(name: string): string {
  const shown = cleanFileName(name).replaceAll(/[/\\]/g, '_');
  const ascii = shown.replaceAll(/[^\w.() -]/g, '_');
  const full = encodeURIComponent(shown).replaceAll(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16)}`,
  );
  return `filename="${ascii}"; filename*=UTF-8''${full}`;
}
