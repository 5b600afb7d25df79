import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createLimit, type Limit } from '#channel-kit/limit.ts';
import { retryAfterMs } from '#channel-kit/remote-number.ts';
import type { AttachmentRef, StoredAttachment } from '#contracts/attachment.ts';
import type { ChannelAdapter } from '#contracts/channel.ts';
import type { MediaAbility } from '#contracts/channel-abilities.ts';
import type { Clock } from '#contracts/clock.ts';
import { hasCode, ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { Probe } from '#contracts/probe.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { FileReader } from '../media/file-reader.ts';
import { createSniffer } from '../media/sniff.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { conversationKeyOf } from '../store/base/keys.ts';
import { type PendingFetch, readPendingFetch, storeFetched } from '../store/intake/media.ts';
import { isBeingRead } from '../store/lanes/file-parts.ts';
import { type ChatTexts, fillText } from '../texts/chat-texts.ts';
import { fileNotices, type NoticeTexts } from './file-notices.ts';
import { newMediaName } from './media.ts';
import { createFileAllowance, type FileAllowance } from './rate-limit.ts';

export type FetcherDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  readonly mediaDir: string;
  readonly maxBytes: number;
  /** Limit on all files of one sender together. */
  readonly maxBytesPerHour: number;
  /** Returns how long a bundle waits for more after its last part, ms. */
  joinMs(): number;
  readonly texts: Pick<ChatTexts, 'fileTooLarge' | 'fileTooMany' | 'fileOverLimit' | 'fileNotFetched'> &
    NoticeTexts;
  readonly reader: FileReader;
  /** Where the sender of a voice message is shown what was understood. */
  readonly echo: 'dm' | 'always' | 'off';
  channelFor(route: ReplyRoute): { readonly adapter: Pick<ChannelAdapter, 'media'> } | undefined;
  start(effects: Effects): void;
  /** False while the disk is too full to store anything. */
  hasSpace(): boolean;
};

/** Downloads the attachments of accepted messages in the background. */
export interface Fetcher {
  /**
   * Fetches an accepted message's attachments. Never waits, never throws; a repeated call has no effect while one runs.
   */
  fetch(inboxId: string): void;
  stop(): Promise<void>;
}

/** Most files fetched per message; any further ones stay with the network. */
const maxFiles = 10;
const maxAttempts = 3;
/** Longest wait while the network is unreachable or asks to wait, ms: shorter than the message waits. */
const patienceMs = 15_000;
/**
 * How many messages' files are fetched at once: a backlog may contain thousands of photos, and networks refuse a flood.
 */
const maxAtOnce = 8;
/** The same for messages with voice messages, which may wait for minutes until somebody has written them down. */
const maxVoicesAtOnce = 8;
/**
 * How much arrives before the memory of written chunks is freed. By itself V8 waits for some 60 MB, beside the memory
 * of a file that is being read.
 */
const freedAfterBytes = 4_000_000;

/**
 * Creates step 2: it fetches the files of messages and reads them, durably and with retries. A message waits 20 s for
 * each of the two, and longer for voice messages.
 */
export function createFetcher(deps: FetcherDeps): Fetcher {
  const working = new Map<string, Promise<void>>();
  const waiting = new Set<string>();
  const stopping = new AbortController();
  const allowance = createFileAllowance(deps.clock, { bytesPerHour: deps.maxBytesPerHour });
  const countArrived = freeChunks();
  const voices = createLimit(maxVoicesAtOnce);
  let taken = 0;
  const begin = () => {
    for (const inboxId of waiting) {
      // Without space they keep waiting; the sweep calls again.
      if (taken >= maxAtOnce || stopping.signal.aborted || !deps.hasSpace()) return;
      waiting.delete(inboxId);
      taken += 1;
      const leave = once(() => {
        taken -= 1;
        begin();
      });
      const place = { leave, voices };
      const work = fetchAll({ ...deps, allowance, countArrived }, inboxId, { place, signal: stopping.signal })
        .catch((error: unknown) => deps.log.warn({ inboxId, error }, 'media.interrupted'))
        .finally(() => {
          working.delete(inboxId);
          leave();
        });
      working.set(inboxId, work);
    }
  };
  return {
    fetch: (inboxId) => {
      if (!working.has(inboxId)) waiting.add(inboxId);
      begin();
    },
    stop: async () => {
      stopping.abort();
      await Promise.all(working.values());
    },
  };
}

type FetchDeps = FetcherDeps & {
  readonly allowance: FileAllowance;
  /** Called with the length of each chunk of any file. */
  readonly countArrived: (bytes: number) => void;
};

/** Collecting young objects takes a few ms; Node.js offers it with `--expose-gc`, which bin/parley.mjs sets. */
function freeChunks(): (bytes: number) => void {
  let arrived = 0;
  return (bytes) => {
    arrived += bytes;
    if (arrived < freedAfterBytes) return;
    arrived = 0;
    globalThis.gc?.({ type: 'minor' });
  };
}

/** A message's place among those that are fetched. */
type Place = {
  /** Makes room for the next message. */
  readonly leave: () => void;
  readonly voices: Limit;
};

async function fetchAll(
  deps: FetchDeps,
  inboxId: string,
  { place, signal }: { readonly place: Place; readonly signal: AbortSignal },
): Promise<void> {
  const pending = await deps.store.read(readPendingFetch, { inboxId });
  const media = pending && deps.channelFor(pending.route)?.adapter.media;
  // The channel isn't connected here yet; the sweep calls again.
  if (!pending || !media) return;
  if (signal.aborted) return;
  // After a crash while they were being read, they aren't fetched again.
  const stored = pending.stored ?? (await fetchFiles(deps, pending, { media, signal }));
  if (stored === undefined) return;
  const fetchedAt = deps.clock.now();
  const read = () => readAndStore(deps, pending, { stored, fetchedAt, signal });
  if (!pending.attachments.some(({ kind }) => kind === 'voice')) return read();
  place.leave();
  await place.voices(read);
}

type FetchedFiles = {
  readonly stored: readonly StoredAttachment[];
  /** When they were stored, ms. */
  readonly fetchedAt: number;
  readonly signal: AbortSignal;
};

async function readAndStore(deps: FetchDeps, pending: PendingFetch, fetched: FetchedFiles): Promise<void> {
  if (fetched.signal.aborted) return;
  const { read, isWritten } = await readAll(deps, pending, fetched);
  if (!isWritten || fetched.signal.aborted) return;
  await store(deps, pending, read);
  deps.probe.reach('media-read');
}

function once(act: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    act();
  };
}

/** Fetches and stores the files. Undefined if the process is ending. */
async function fetchFiles(
  deps: FetchDeps,
  pending: PendingFetch,
  { media, signal }: { readonly media: MediaAbility; readonly signal: AbortSignal },
): Promise<readonly StoredAttachment[] | undefined> {
  const { inboxId, sender, attachments } = pending;
  const stored: StoredAttachment[] = [];
  for (const [index, ref] of attachments.entries()) {
    const file =
      index < maxFiles
        ? await fetchWithin(deps, { inboxId, sender, media, ref, signal })
        : refused(ref, fillText(deps.texts.fileTooMany, { count: maxFiles }));
    const begun = file.kind === 'stored' ? await deps.reader.begin(file, attachments.length) : file;
    stored.push(ref.of === undefined ? begun : { ...begun, of: ref.of });
  }
  if (signal.aborted) return undefined;
  await store(deps, pending, stored);
  deps.probe.reach('fetched');
  // Also the files that couldn't be fetched, since nothing tries them again.
  for (const ref of attachments) await release(deps, { inboxId, media, ref, signal });
  return stored;
}

async function store(
  { store, texts, joinMs, reader, start, echo }: FetchDeps,
  { inboxId, attachments, route, isDirect }: PendingFetch,
  stored: readonly StoredAttachment[],
): Promise<void> {
  // Reading ends a little earlier, so that its result is in time.
  const readMs = reader.waitMs(stored.filter(isBeingRead)) + 2_000;
  const isEchoed = echo === 'always' || (echo === 'dm' && isDirect);
  const notices = fileNotices(texts, {
    inboxId,
    conversationKey: conversationKeyOf(route),
    stored,
    isEchoed,
  });
  const fetched = { inboxId, attachments, stored, joinMs: joinMs(), readMs, notices };
  start(await store.write(storeFetched, fetched));
}

/** Reads the files that take time, for no longer than their message waits. */
async function readAll(
  { reader, clock }: FetchDeps,
  { inboxId }: PendingFetch,
  { stored, fetchedAt, signal }: FetchedFiles,
): Promise<{ readonly read: readonly StoredAttachment[]; readonly isWritten: boolean }> {
  const waiting = stored.filter(isBeingRead);
  if (waiting.length === 0) return { read: stored, isWritten: false };
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  const leftMs = fetchedAt + reader.waitMs(waiting) - clock.now();
  const wait = clock.wait(Math.max(0, leftMs), until).then(() => over.abort());
  try {
    const read = await Promise.all(
      stored.map((file) => {
        if (!isBeingRead(file)) return file;
        const isViewOnce = file.isViewOnce === true;
        const newName = () => newMediaName(inboxId, { isViewOnce });
        return reader.finish(file, { among: stored.length, newName, signal: until });
      }),
    );
    return { read, isWritten: true };
  } finally {
    over.abort();
    await wait;
  }
}

type FetchRequest = {
  readonly inboxId: string;
  readonly media: MediaAbility;
  readonly ref: AttachmentRef;
  readonly signal: AbortSignal;
};

/** Releases the network's copy. Only after the commit: until then it is the only copy that counts. */
async function release(deps: FetcherDeps, { media, ref, signal }: FetchRequest): Promise<void> {
  await media
    .release?.(ref, signal)
    .catch((error: unknown) => deps.log.warn({ error }, 'media.not-released'));
}

function missing({ name, kind }: AttachmentRef, reason: string): StoredAttachment {
  return { kind: 'missing', name: name ?? kind, reason };
}

function refused(ref: AttachmentRef, reason: string): StoredAttachment {
  return { kind: 'missing', name: ref.name ?? ref.kind, reason, isRefused: true };
}

/** Fetches a file if the sender's allowance has room. Counts the stated size while fetching, then the real one. */
async function fetchWithin(
  deps: FetchDeps,
  { sender, ...fetching }: FetchRequest & { readonly sender: string },
): Promise<StoredAttachment> {
  const { allowance, texts, maxBytesPerHour } = deps;
  const stated = fetching.ref.sizeBytes ?? 0;
  if (stated <= deps.maxBytes && !allowance.hasRoom(sender, stated))
    return refused(fetching.ref, fillText(texts.fileOverLimit, { size: maxBytesPerHour / 1e6 }));
  allowance.count(sender, stated);
  const file = await fetchWithRetry(deps, fetching);
  allowance.count(sender, (file.kind === 'stored' ? file.sizeBytes : 0) - stated);
  return file;
}

async function fetchWithRetry(deps: FetchDeps, fetching: FetchRequest): Promise<StoredAttachment> {
  const { ref, signal } = fetching;
  const { clock, log } = deps;
  const name = ref.name ?? ref.kind;
  const until = clock.now() + patienceMs;
  for (let attempt = 1; ; ) {
    try {
      return await fetchOne(deps, fetching, name);
    } catch (error) {
      const isTooLarge = hasCode(error, 'media_too_large');
      if (isTooLarge) {
        const reason = fillText(deps.texts.fileTooLarge, { size: deps.maxBytes / 1e6 });
        return refused(ref, reason);
      }
      const askedMs = waitOf(error);
      const isOver = askedMs === undefined ? attempt >= maxAttempts : clock.now() + askedMs > until;
      if (isOver || signal.aborted) return missing(ref, deps.texts.fileNotFetched);
      log.warn({ attempt, error }, 'media.retried');
      await clock.wait(askedMs ?? 500 * 4 ** (attempt - 1), signal);
      if (askedMs === undefined) attempt += 1;
    }
  }
}

/** Returns when the network may have the file, ms from now; undefined if the refusal doesn't say. */
function waitOf(error: unknown): number | undefined {
  const advice = error instanceof ParleyError ? error.retry : undefined;
  return advice?.kind === 'later' && advice.afterMs !== undefined ? retryAfterMs(advice.afterMs) : undefined;
}

/** Stores the file under a generated name, never the sender's, and either completely or not at all. */
async function fetchOne(
  deps: FetchDeps,
  { inboxId, media, ref, signal }: FetchRequest,
  name: string,
): Promise<StoredAttachment> {
  await mkdir(deps.mediaDir, { recursive: true, mode: 0o700 });
  const path = newMediaName(inboxId, { isViewOnce: ref.isViewOnce === true });
  const whole = join(deps.mediaDir, path);
  const partial = `${whole}.part`;
  try {
    let sizeBytes = 0;
    const sniffer = createSniffer();
    const bytes = media.fetch(ref, deps.maxBytes, signal);
    const counted = async function* () {
      for await (const chunk of bytes) {
        sizeBytes += chunk.length;
        sniffer.add(chunk);
        yield chunk;
        deps.countArrived(chunk.length);
      }
    };
    await pipeline(Readable.from(counted()), createWriteStream(partial, { mode: 0o600 }), { signal });
    await rename(partial, whole);
    const facts = { path, mimeType: sniffer.type(), sizeBytes, name, sentAs: ref.kind };
    return { kind: 'stored', ...facts, ...(ref.isViewOnce && { isViewOnce: true }) };
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}
