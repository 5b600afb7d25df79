import { z } from 'zod';
import { cappedDownload, type DownloadRequest, unavailable } from '#channel-kit/capped-download.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { DiscordApi } from './api.ts';
import { type AttachmentLocation, readRef } from './attachment-ref.ts';
import { networkReason, readRefusal } from './failures.ts';
import { attachmentSchema } from './payload-schema.ts';

export type MediaDeps = {
  readonly apiBase: string;
  /** Reads a message again, which gives it fresh links. */
  readonly api: Pick<DiscordApi, 'message'>;
};

/** Hosts of the files that people upload. */
const hosts = new Set(['cdn.discordapp.com', 'media.discordapp.net']);
const messageSchema = z.object({ attachments: z.array(attachmentSchema) });

/** Streams a file. Links are signed for a day; an expired one is requested again. */
export function fetchMedia(deps: MediaDeps, wanted: DownloadRequest): AsyncIterable<Uint8Array> {
  const begin = async (signal: AbortSignal) => {
    const located = readRef(wanted.ref.ref);
    if (located === undefined) throw unavailable('it has no address');
    const { headers, body } = await open(deps, located, signal);
    return { statedBytes: headers.get('content-length'), body };
  };
  return cappedDownload({ open: begin, networkReason }, wanted);
}

async function open(deps: MediaDeps, located: AttachmentLocation, signal: AbortSignal): Promise<Response> {
  let answer = await download(deps, located.url, signal);
  const isExpired = answer.status === 403 || answer.status === 404 || answer.status === 410;
  if (isExpired) answer = await download(deps, await freshUrl(deps, located, signal), signal);
  if (answer.ok) return answer;
  throw unavailable(`Discord answered ${answer.status} to the download`);
}

/** Downloads only from Discord itself: the address came with a message, and anybody can write messages. */
async function download({ apiBase }: MediaDeps, url: string, signal: AbortSignal): Promise<Response> {
  const { origin, protocol, hostname } = new URL(url);
  const isDiscord = (protocol === 'https:' && hosts.has(hostname)) || origin === new URL(apiBase).origin;
  if (!isDiscord) throw unavailable('its address isn’t one of Discord’s');
  return fetch(url, { signal, redirect: 'error' });
}

async function freshUrl(
  { api }: MediaDeps,
  located: AttachmentLocation,
  signal: AbortSignal,
): Promise<string> {
  try {
    const { attachments } = messageSchema.parse(await api.message(located.channel, located.message, signal));
    const found = attachments.find(({ id }) => id === located.id);
    if (found === undefined) throw unavailable('it was removed from its message');
    return found.url;
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    const refusal = readRefusal(error);
    if (refusal === undefined) throw error;
    throw unavailable(refusal.reason, { afterMs: refusal.retryAfterMs });
  }
}
