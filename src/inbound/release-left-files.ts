import type { ChannelAdapter } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Store } from '../store/base/command.ts';
import { forgetLeftFiles, readLeftFiles } from '../store/rows/left-files.ts';

export type LeftFilesDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  channelFor(route: ReplyRoute): { readonly adapter: Pick<ChannelAdapter, 'media'> } | undefined;
};

const atOnce = 100;
/** Time limit, ms: a network may stay unconnected or refuse forever, while other files wait behind these. */
const patienceMs = 30 * 86_400_000;

/**
 * Asks networks to remove files that won't be fetched. Files wait if their network isn't connected here or doesn't
 * respond. Asking twice is harmless, and so is a crash in between. Never rejects because of a network.
 */
export async function releaseLeftFiles(deps: LeftFilesDeps, signal: AbortSignal): Promise<void> {
  const { store, clock, log, channelFor } = deps;
  const done: string[] = [];
  for (const { id, route, files, at } of await store.read(readLeftFiles, { limit: atOnce })) {
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
