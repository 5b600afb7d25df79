import { cappedDownload, type DownloadRequest, unavailable } from '#channel-kit/capped-download.ts';
import { refuseRedirect } from '#channel-kit/redirects.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { DiscordApi } from './api.ts';
import { type AttachmentLocation, isDiscordFile, readRef } from './attachment-ref.ts';
import { networkReason, readRefusal } from './failures.ts';
import { fieldsOf } from './raw-fields.ts';

export type MediaDeps = {
  readonly apiBase: string;
  /** Reads a message again, which gives it fresh links. */
  readonly api: Pick<DiscordApi, 'message'>;
};

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
  const { origin } = new URL(url);
  const isDiscord = isDiscordFile(url) || origin === new URL(apiBase).origin;
  if (!isDiscord) throw unavailable('its address isn’t one of Discord’s');
  const answer = await fetch(url, { signal, redirect: 'manual' });
  refuseRedirect(url, { status: answer.status, location: answer.headers.get('location') });
  return answer;
}

async function freshUrl(
  { api }: MediaDeps,
  located: AttachmentLocation,
  signal: AbortSignal,
): Promise<string> {
  try {
    const found = addressIn(await api.message(located.channel, located.message, signal), located);
    if (found === undefined) throw unavailable('it was removed from its message');
    return found;
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    const refusal = readRefusal(error);
    if (refusal === undefined) throw error;
    throw unavailable(refusal.reason, { afterMs: refusal.retryAfterMs });
  }
}

/** How many values of a message are looked at. */
const maxValues = 10_000;

/**
 * Finds the file in a message that was read again, wherever it is: in its attachments, a card, or a forwarded message.
 * A fresh link differs only in its query; an upload is also known by its id.
 */
function addressIn(message: unknown, { id, url }: AttachmentLocation): string | undefined {
  const { origin, pathname } = new URL(url);
  const values: unknown[] = [message];
  for (let at = 0; at < values.length && at < maxValues; at += 1) {
    const value = values[at];
    const isText = typeof value === 'string';
    const found = isText ? URL.parse(value) : null;
    if (found?.origin === origin && found.pathname === pathname) return found.href;
    if (isText || typeof value !== 'object' || value === null) continue;
    const { id: own, url: address } = fieldsOf(value);
    if (own === id && typeof address === 'string' && URL.canParse(address)) return address;
    values.push(...Object.values(value).slice(0, maxValues));
  }
  return undefined;
}
