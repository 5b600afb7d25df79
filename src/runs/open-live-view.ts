import type { HostedChannel } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { Probe } from '#contracts/probe.ts';
import { type ReplyRoute, routeOf } from '#contracts/route.ts';
import type { Sections } from '#contracts/section.ts';
import type { Store } from '../store/base/command.ts';
import { readUnknownPreview, type UnknownPreview } from '../store/delivery/record-preview.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { readPreview } from '../store/lanes/recover-run.ts';
import { previewRoute } from './answer-parts.ts';
import { createLiveView, createNoopView, type LiveView } from './live-view.ts';
import { createLostPreview } from './lost-preview.ts';
import type { PreviewJournal } from './preview-surface.ts';
import type { RunSettings } from './run-settings.ts';

export type LiveViewDeps = {
  readonly store: Store;
  readonly journal: PreviewJournal;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  readonly sections: Sections;
  readonly settings: Pick<RunSettings, 'isPreviewOn' | 'replyToMode'>;
  channelFor(route: ReplyRoute): HostedChannel | undefined;
};

/** Opens the display of a claimed run; `channel` is the connection that shows it, if there is one. */
export async function openLiveView(
  deps: LiveViewDeps,
  run: ClaimedRun,
  channel: HostedChannel | undefined,
): Promise<LiveView> {
  const { store, journal, clock, log, probe, sections, settings } = deps;
  const route = routeOf(run.target);
  if (!route) return createNoopView();
  const lookFor = (lost: UnknownPreview) =>
    createLostPreview({ store, log, channel: () => deps.channelFor(route) }, run, lost);
  const standing = run.isResumed ? await store.read(readPreview, { runId: run.runId }) : undefined;
  const lost = run.isResumed && !standing ? await store.read(readUnknownPreview, run) : undefined;
  const findLost = lost && lookFor(lost);
  if (!channel) return createNoopView(standing, findLost);
  const { runId, laneKey, epoch, chatKind } = run;
  return createLiveView({
    adapter: channel.adapter,
    capabilities: channel.definition.capabilities,
    isPreviewOn: settings.isPreviewOn,
    route: previewRoute(route, settings.replyToMode),
    ...{ runId, laneKey, epoch, chatKind, standing, findLost, lookFor },
    ...{ store, journal, clock, log, probe, sections },
  });
}
