import type { DropPolicy } from '#contracts/queue-settings.ts';

/** A task with its coordinator's lane. */
export type ChangedTask = {
  readonly id: string;
  readonly laneKey: string;
  readonly isUnsettled: boolean;
};

/** Work that a commit makes due; the sweep finds all of it too. */
export type Effects = {
  readonly wakes: { readonly laneKey: string; readonly class: string; readonly delayMs: number }[];
  /** Lanes with an active run that got a new message. */
  readonly arrivals: string[];
  /** Lanes with a message whose text or outcome was changed, for the clients that show it. */
  readonly changes: string[];
  readonly cancels: { readonly runId: string; readonly reason: string }[];
  readonly deliveries: string[];
  /** Rows whose attachments are to be fetched. */
  readonly fetches: string[];
  /** Messages dropped because the cap was reached. */
  readonly overflows: { readonly laneKey: string; readonly drop: DropPolicy }[];
  /** Runs that another process has ended, and why. */
  readonly gaveUp: { readonly laneKey: string; readonly runId: string; readonly reason: string }[];
  /** Duplicates with a different date and text: the platform seems to assign ids twice. */
  readonly reusedKeys: string[];
  /** Sub-agents that have ended, and those that were asked to stop. */
  readonly endedChildren: string[];
  readonly stoppedChildren: string[];
  readonly endedSessions: string[];
  /** Tasks that have changed; unsettled ones are for `settleTask`. */
  readonly tasks: ChangedTask[];
  /** Changes to tasks behind which tests kill the process. */
  readonly taskPoints: ('task-dispatched' | 'reply-recorded' | 'aggregating')[];
};

/** Returns the effects of a commit that makes nothing due. */
export function noEffects(): Effects {
  return {
    wakes: [],
    arrivals: [],
    changes: [],
    cancels: [],
    deliveries: [],
    fetches: [],
    overflows: [],
    gaveUp: [],
    reusedKeys: [],
    endedChildren: [],
    stoppedChildren: [],
    endedSessions: [],
    tasks: [],
    taskPoints: [],
  };
}

/** Adds what another step of the same commit makes due. */
export function addEffects(to: Effects, from: Effects): void {
  // Each list receives the entries of its namesake.
  for (const [name, list] of Object.entries(from)) (to[name as keyof Effects] as unknown[]).push(...list);
}
