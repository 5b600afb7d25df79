import { lstat, opendir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ChannelAdapter } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { bisectFailures } from '../queue/bisect-failures.ts';
import type { Store } from '../store/base/command.ts';
import { expireMedia, type MediaFile, readMediaUse } from '../store/intake/media.ts';
import { forgetLeftFiles, readLeftFiles } from '../store/rows/left-files.ts';
import { readMediaName } from './media.ts';

export type MediaRetentionDeps = LeftFilesDeps & {
  readonly mediaDir: string;
  /** How long files of finished messages are kept, ms. */
  readonly keepMs: number;
};

type OldMediaDeps = Pick<MediaRetentionDeps, 'store' | 'clock' | 'log' | 'mediaDir' | 'keepMs'>;

/** Also delays the first look, so that it doesn't slow the start down. */
const intervalMs = 60_000;
const tidyEveryMs = 6 * 3_600_000;
/** By this age, ms, a download has ended for good, and a row would name its file. */
const leftoverMs = 86_400_000;
/** Files read and marked per step, so that work that people wait for can come between. */
const atOnce = 20;

/**
 * Removes old files of messages four times a day until stopped, and each minute those that may be looked at once; asks networks to remove files that won't be
 * fetched. Several processes may do so in one folder.
 */
export function startMediaRetention(deps: MediaRetentionDeps): { stop(): Promise<void> } {
  const { clock, log } = deps;
  const stopping = new AbortController();
  const loop = async () => {
    for (let tidiedAt = 0; ; ) {
      await clock.wait(intervalMs, stopping.signal);
      if (stopping.signal.aborted) return;
      try {
        await releaseLeftFiles(deps, stopping.signal).catch((error: unknown) =>
          log.warn({ error }, 'media.not-released'),
        );
        if (Math.abs(clock.now() - tidiedAt) < tidyEveryMs) {
          await removeOldMedia(deps, stopping.signal, 'view-once');
          continue;
        }
        tidiedAt = clock.now();
        const removed = await removeOldMedia(deps, stopping.signal);
        if (removed > 0) log.info({ removed }, 'media.removed');
      } catch (error) {
        // The next look finds the files again.
        log.warn({ error }, 'media.not-removed');
      }
    }
  };
  const running = loop();
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

/**
 * Removes files of finished messages older than `keepMs`, those that may be looked at once at any age, and leftovers of interrupted downloads; returns how many.
 * Only regular files directly in the folder and named by `newMediaName` are removed. Safe to repeat and to interrupt.
 */
export async function removeOldMedia(
  deps: OldMediaDeps,
  signal: AbortSignal,
  which: 'all' | 'view-once' = 'all',
): Promise<number> {
  let removed = 0;
  let batch: OldFile[] = [];
  for await (const file of oldFiles(deps, which)) {
    if (signal.aborted) return removed;
    batch.push(file);
    if (batch.length < atOnce) continue;
    removed += await removeUnneeded(deps, batch);
    batch = [];
  }
  return removed + (await removeUnneeded(deps, batch));
}

type OldFile = MediaFile & {
  readonly isPartial: boolean;
  readonly isExpired: boolean;
  /** No row will name it if none does now. */
  readonly isSettled: boolean;
};

async function* oldFiles(
  { mediaDir, clock, keepMs }: OldMediaDeps,
  which: 'all' | 'view-once',
): AsyncGenerator<OldFile> {
  const folder = await opendir(mediaDir).catch((error: NodeJS.ErrnoException) => {
    // No file has ever been fetched.
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (folder === undefined) return;
  for await (const { name } of folder) {
    const named = readMediaName(name);
    if (named === undefined || (which === 'view-once' && !named.isViewOnce)) continue;
    // Another process may have removed it.
    const stats = await lstat(join(mediaDir, name)).catch(() => undefined);
    if (!stats?.isFile()) continue;
    const ageMs = clock.now() - stats.mtimeMs;
    const isSettled = ageMs >= leftoverMs;
    const { inboxId, isPartial, isViewOnce } = named;
    const isExpired = isViewOnce || ageMs >= keepMs;
    if (isSettled || (isViewOnce && !isPartial)) yield { inboxId, name, isPartial, isExpired, isSettled };
  }
}

async function removeUnneeded(
  { store, log, mediaDir }: OldMediaDeps,
  files: readonly OldFile[],
): Promise<number> {
  const whole = files.filter(({ isPartial }) => !isPartial).map(({ inboxId, name }) => ({ inboxId, name }));
  const read = async (some: readonly MediaFile[]) => {
    const found = await store.read(readMediaUse, { files: some });
    return some.map(({ name }, index) => [name, found[index]] as const);
  };
  const skip = ({ name }: MediaFile, error: unknown) => log.warn({ name, error }, 'media.not-removed');
  const uses = new Map((await bisectFailures(whole, read, skip)).flat());
  const idle = files.filter(({ name, isExpired }) => isExpired && uses.get(name) === 'idle');
  const expire = (some: readonly MediaFile[]) => store.write(expireMedia, { files: some });
  const expired = await bisectFailures(idle.map(mediaFile), expire, skip);
  const leftover = files.filter(
    ({ name, isPartial, isSettled }) => isSettled && (isPartial || uses.get(name) === 'unnamed'),
  );
  const names = [...leftover.map(({ name }) => name), ...expired.flat()];
  for (const name of names) await rm(join(mediaDir, name), { force: true });
  return names.length;
}

function mediaFile({ inboxId, name }: OldFile): MediaFile {
  return { inboxId, name };
}

type LeftFilesDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  channelFor(route: ReplyRoute): { readonly adapter: Pick<ChannelAdapter, 'media'> } | undefined;
};

const maxLeftFiles = 100;
/** Time limit, ms: a network may stay unconnected or refuse forever, while other files wait behind these. */
const patienceMs = 30 * 86_400_000;

/**
 * Asks networks to remove files that won't be fetched. Files wait if their network isn't connected here or doesn't
 * respond. Asking twice is harmless, and so is a crash in between. Never rejects because of a network.
 */
export async function releaseLeftFiles(deps: LeftFilesDeps, signal: AbortSignal): Promise<void> {
  const { store, clock, log, channelFor } = deps;
  const done: string[] = [];
  for (const { id, route, files, at } of await store.read(readLeftFiles, { limit: maxLeftFiles })) {
    if (signal.aborted) break;
    const channel = channelFor(route);
    const isLate = at <= clock.now() - patienceMs;
    if (channel === undefined && !isLate) continue;
    try {
      for (const file of files) await channel?.adapter.media?.release?.(file, signal);
      done.push(id);
    } catch (error) {
      log.warn({ error }, 'media.not-released');
      if (isLate) done.push(id);
    }
  }
  if (done.length > 0) await store.write(forgetLeftFiles, { ids: done });
}
