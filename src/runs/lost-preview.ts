/**
 * A preview whose process died, or got no answer, before its platform's id was known. Where the network's history can be
 * read, the message is looked for there; elsewhere nobody can tell, and `parley why` says so.
 */
import { withLimit } from '#channel-kit/with-limit.ts';
import type { HostedChannel } from '#contracts/channel.ts';
import type { Log } from '#contracts/log.ts';
import type { Store } from '../store/base/command.ts';
import { adoptPreview, type UnknownPreview } from '../store/delivery/record-preview.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import type { LivePreview } from '../store/lanes/recover-run.ts';

/** Looks for the preview, once; resolves with it if it stands. Never rejects. */
export type FindLostPreview = () => Promise<LivePreview | undefined>;

export type LostPreviewDeps = {
  readonly store: Store;
  readonly log: Log;
  /** The connection at that time: after a restart a run may go on before its channel is back. */
  channel(): HostedChannel | undefined;
};

/** An answer waits for no longer than this, ms. */
const lookupMs = 3_000;

/** The search for a preview of the run; begun when it is asked for. */
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
