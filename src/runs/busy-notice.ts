import type { OnWait } from '#contracts/model.ts';
import { routeOf } from '#contracts/route.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { storeNotice } from '../store/lanes/commit-turn.ts';
import type { ChatTexts } from '../texts/chat-texts.ts';

/** After waiting for the model this long, the person is notified once. */
const busyNoticeMs = 15_000;

/** Notifies a run's person once that its model is slow. Both methods reject with the store's faults. */
export type BusyNotice = {
  /** Adds up the waits between attempts at model calls, ms. Call it before each wait. */
  readonly onWait: OnWait;
  /** Call it when the model was asked but has been silent for long. */
  onQuiet(): Promise<void>;
};

/** Creates the busy notice for one attempt at a run. */
export function createBusyNotice(
  deps: {
    readonly store: Store;
    readonly texts: ChatTexts;
    start(effects: Effects): void;
  },
  { runId, laneKey, epoch, target }: ClaimedRun,
): BusyNotice {
  const { store, texts, start } = deps;
  const route = routeOf(target);
  let waitedMs = 0;
  const tell = async (text: string) => {
    if (!route) return;
    const content = { kind: 'text', text: { text, spans: [] } } as const;
    start(await store.write(storeNotice, { laneKey, epoch, runId, key: `${runId}:busy`, route, content }));
  };
  return {
    onWait: async (waitMs) => {
      const before = waitedMs;
      waitedMs += waitMs;
      if (before <= busyNoticeMs && waitedMs > busyNoticeMs) await tell(texts.modelBusy);
    },
    onQuiet: () => tell(texts.modelSlow),
  };
}
