import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { AttachmentRef, StoredAttachment } from '#contracts/attachment.ts';
import type { HostedChannel } from '#contracts/channel.ts';
import type { MediaAbility } from '#contracts/channel-abilities.ts';
import type { Clock } from '#contracts/clock.ts';
import { hasCode } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { Probe } from '#contracts/probe.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { readPendingFetch, storeFetched } from '../store/intake/fetching.ts';
import { fillNotice, type Notices } from '../texts/notices.ts';
import { sniffType } from './sniff-type.ts';

export type FetcherDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  readonly mediaDir: string;
  readonly maxBytes: number;
  readonly texts: Pick<Notices, 'fileTooLarge' | 'fileNotFetched'>;
  channelFor(route: ReplyRoute): HostedChannel | undefined;
  start(effects: Effects): void;
};

/** Downloads the attachments of accepted messages in the background. */
export interface Fetcher {
  /** Fetches what came with an accepted message. Never waits, never throws; twice at once is once. */
  fetch(inboxId: string): void;
  stop(): Promise<void>;
}

const maxAttempts = 3;

/** Step 2: the files of a message, durable and retried. A message waits for them 20 s, then goes on without. */
export function createFetcher(deps: FetcherDeps): Fetcher {
  const working = new Map<string, Promise<void>>();
  const stopping = new AbortController();
  return {
    fetch: (inboxId) => {
      if (working.has(inboxId) || stopping.signal.aborted) return;
      const work = fetchAll(deps, inboxId, stopping.signal)
        .catch((error: unknown) => deps.log.warn({ inboxId, error }, 'media.interrupted'))
        .finally(() => working.delete(inboxId));
      working.set(inboxId, work);
    },
    stop: async () => {
      stopping.abort();
      await Promise.all(working.values());
    },
  };
}

async function fetchAll(deps: FetcherDeps, inboxId: string, signal: AbortSignal): Promise<void> {
  const pending = await deps.store.read(readPendingFetch, { inboxId });
  const media = pending && deps.channelFor(pending.route)?.adapter.media;
  // The channel is not connected here yet: the sweep asks again.
  if (!pending || !media) return;
  const stored: StoredAttachment[] = [];
  for (const ref of pending.attachments) stored.push(await fetchWithRetry(deps, { media, ref, signal }));
  if (signal.aborted) return;
  deps.start(await deps.store.write(storeFetched, { inboxId, stored }));
  deps.probe.reach('fetched');
  for (const [index, ref] of pending.attachments.entries()) {
    if (stored[index]?.kind === 'stored') await release(deps, { media, ref, signal });
  }
}

type Fetching = { readonly media: MediaAbility; readonly ref: AttachmentRef; readonly signal: AbortSignal };

/** Only after the commit: until then the network's copy is the only one that counts. */
async function release(deps: FetcherDeps, { media, ref, signal }: Fetching): Promise<void> {
  await media
    .release?.(ref, signal)
    .catch((error: unknown) => deps.log.warn({ error }, 'media.not-released'));
}

async function fetchWithRetry(deps: FetcherDeps, fetching: Fetching): Promise<StoredAttachment> {
  const { ref, signal } = fetching;
  const name = ref.name ?? ref.kind;
  for (let attempt = 1; ; attempt++) {
    try {
      return await fetchOne(deps, fetching, name);
    } catch (error) {
      const isTooLarge = hasCode(error, 'media_too_large');
      if (isTooLarge) {
        const reason = fillNotice(deps.texts.fileTooLarge, { size: deps.maxBytes / 1e6 });
        return { kind: 'missing', name, reason };
      }
      if (attempt >= maxAttempts || signal.aborted)
        return { kind: 'missing', name, reason: deps.texts.fileNotFetched };
      deps.log.warn({ attempt, error }, 'media.retried');
      await deps.clock.wait(500 * 4 ** (attempt - 1), signal);
    }
  }
}

/** Under a generated name, never the sender's; whole or not at all. */
async function fetchOne(
  deps: FetcherDeps,
  { media, ref, signal }: Fetching,
  name: string,
): Promise<StoredAttachment> {
  await mkdir(deps.mediaDir, { recursive: true, mode: 0o700 });
  const path = join(deps.mediaDir, crypto.randomUUID());
  const partial = `${path}.part`;
  try {
    let sizeBytes = 0;
    let head = Buffer.alloc(0);
    const bytes = media.fetch(ref, deps.maxBytes, signal);
    const counted = async function* () {
      for await (const chunk of bytes) {
        sizeBytes += chunk.length;
        if (head.length < 64) head = Buffer.concat([head, chunk]).subarray(0, 64);
        yield chunk;
      }
    };
    await pipeline(Readable.from(counted()), createWriteStream(partial, { mode: 0o600 }), { signal });
    await rename(partial, path);
    return { kind: 'stored', path, mimeType: sniffType(head), sizeBytes, name };
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}
