import type { LaneClass } from '#contracts/lane-class.ts';
import type { QueueSettings } from '#contracts/queue-settings.ts';

/** A lane as configured; used when the row is new, or where nothing overrides it. */
export type LaneSpec = {
  readonly key: string;
  readonly class: LaneClass;
  readonly agentId: string;
  readonly chatKind: 'dm' | 'group';
  readonly settings: QueueSettings;
  /** Id of the session to begin, should one be needed. */
  readonly newSessionId: string;
  /** A new session begins if the last activity was before this time (reset policy). */
  readonly resetBefore?: number;
};

/** A lane named only by its key must exist; one that is described is made if needed. */
export type LaneRef = LaneSpec | { readonly key: string };
