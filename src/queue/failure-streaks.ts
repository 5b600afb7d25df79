import { hasCode, isStoreAway } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import { faultText } from '../agent/fault-text.ts';
import { raiseAlert } from '../store/alerts/alert.ts';
import type { Store } from '../store/base/command.ts';

/** Something that has to work for messages to move, and fails each time: a lane, a conversation's sends, a part of the sweep. */
export type FailingPart = { readonly part: string; readonly failures: number; readonly cause: string };

/** Counts failures in a row, so that a gateway that runs but can't work says so, whatever the cause. */
export interface FailureStreaks {
  /** Never throws. A store that is away and a lost lease don't count: the one has its own report, the other a successor. */
  failed(part: string, error: unknown): void;
  worked(part: string): void;
  /** Returns the parts that have failed ten times in a row or more, in the order in which they began to. */
  lasting(): readonly FailingPart[];
}

/** From the tenth failure in a row the owner and `/readyz` are told. */
const lastingFrom = 10;
/** As many show that something is wrong just as well as all would. */
const maxParts = 1_000;

/** Creates the counters of one process; alerts are stored, so that the owner hears of a worker's failures too. */
export function createFailureStreaks(deps: {
  readonly store: Pick<Store, 'write'>;
  readonly log: Log;
  /** Removes secrets from a cause. */
  redact(text: string): string;
}): FailureStreaks {
  const { store, log, redact } = deps;
  const streaks = new Map<string, { readonly failures: number; readonly cause: string }>();
  const tell = ({ part, failures, cause }: FailingPart) => {
    log.error({ part, failures, cause }, 'part.failed');
    const values = { failures: String(failures), reason: cause };
    store
      .write(raiseAlert, { kind: 'part-failing', subject: part, values })
      .catch((error: unknown) => log.warn({ part, error }, 'part.not-alerted'));
  };
  return {
    failed: (part, error) => {
      if (isStoreAway(error) || hasCode(error, 'stale_epoch')) return;
      const failures = (streaks.get(part)?.failures ?? 0) + 1;
      if (failures === 1 && streaks.size >= maxParts) return;
      const cause = redact(faultText(error));
      streaks.set(part, { failures, cause });
      if (failures === lastingFrom) tell({ part, failures, cause });
    },
    worked: (part) => {
      const streak = streaks.get(part);
      if (streak === undefined) return;
      streaks.delete(part);
      if (streak.failures >= lastingFrom) log.info({ part, failures: streak.failures }, 'part.recovered');
    },
    lasting: () =>
      [...streaks].flatMap(([part, streak]) => (streak.failures < lastingFrom ? [] : [{ part, ...streak }])),
  };
}
