/**
 * A preview whose process died or got no response before the platform's id was known. If the network's history can be
 * read, the message is looked up there; otherwise its fate is unknown, and `parley why` says so.
 */
import { withLimit } from '#channel-kit/with-limit.ts';
import type { HostedChannel } from '#contracts/channel.ts';
import type { Log } from '#contracts/log.ts';
import type { Store } from '../store/base/command.ts';
import { adoptPreview, type UnknownPreview } from '../store/delivery/record-preview.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import type { LivePreview } from '../store/lanes/recover-run.ts';

/** Looks for the preview once; resolves with it if it exists. Never rejects. */
export type FindLostPreview = () => Promise<LivePreview | undefined>;

export type LostPreviewDeps = {
  readonly store: Store;
  readonly log: Log;
  /** Returns the current connection: after a restart a run may continue before its channel is back. */
  channel(): HostedChannel | undefined;
};

/** Longest time that an answer waits for the lookup, ms. */
const lookupMs = 3_000;

/** Creates the search for a preview of the run; it starts on the first call. */
export function createLostPreview(
  deps: LostPreviewDeps,
  run: Pick<ClaimedRun, 'laneKey' | 'epoch'>,
  lost: UnknownPreview,
): FindLostPreview {
  let found: Promise<LivePreview | undefined> | undefined;
  return () => {
    found ??= find(deps, run, lost).catch((error: unknown) => {
      deps.log.debug({ error, part: lost.part.key }, 'preview.lookup-failed');
      return undefined;
    });
    return found;
  };
}

async function find(
  { store, channel }: LostPreviewDeps,
  { laneKey, epoch }: Pick<ClaimedRun, 'laneKey' | 'epoch'>,
  { part, since }: UnknownPreview,
): Promise<LivePreview | undefined> {
  const lookup = channel()?.adapter.lookup;
  if (lookup === undefined) return undefined;
  const found = await withLimit(lookupMs, undefined, (limited) => lookup.find(part, since, limited));
  if (found.kind !== 'candidates') return undefined;
  const { messageIds } = found;
  return store.write(adoptPreview, { key: part.key, messageIds, laneKey, epoch });
}
