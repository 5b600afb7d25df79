import type { Capabilities } from '#contracts/capabilities.ts';
import type { Log } from '#contracts/log.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { type MarkToShow, readUnsettledMarks, showMarks, type UnsettledMark } from '../store/items/marks.ts';
import { bisectFailures } from './bisect-failures.ts';

export type MarkDisplayDeps = {
  readonly store: Store;
  readonly log: Log;
  /** Undefined for a channel that this process doesn't know. */
  capabilitiesFor(route: ReplyRoute): Capabilities | undefined;
  start(effects: Effects): void;
};

/** Has the networks show the marks that messages are to bear. Throws the store's faults; the next look tries again. */
export interface MarkDisplay {
  look(): Promise<void>;
}

/** Creates the display of marks, which is brought up to date whenever the sweep calls `look`. */
export function createMarkDisplay(deps: MarkDisplayDeps): MarkDisplay {
  const { store, log, start } = deps;
  return {
    look: async () => {
      const unsettled = await store.read(readUnsettledMarks, {});
      const marks = unsettled.flatMap((mark) => toShow(deps, mark) ?? []);
      if (marks.length === 0) return;
      const write = (some: readonly MarkToShow[]) => store.write(showMarks, { marks: some });
      const done = await bisectFailures(marks, write, ({ inboxId }, error) =>
        log.warn({ inboxId, error }, 'mark.skipped'),
      );
      for (const effects of done) start(effects);
    },
  };
}

function toShow(
  { capabilitiesFor }: MarkDisplayDeps,
  { inboxId, laneKey, route }: UnsettledMark,
): MarkToShow | undefined {
  if (route === undefined) return { inboxId, laneKey, canReact: false };
  const capabilities = capabilitiesFor(route);
  return capabilities && { inboxId, laneKey, canReact: capabilities.canReact };
}
