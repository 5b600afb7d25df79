import type { Authority } from '#contracts/outcome.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { InboxContent } from '../base/json.ts';
import type { LaneSpec } from '../base/lane-spec.ts';

/** An item to insert. */
export type NewItem = {
  readonly id: string;
  readonly kind: 'message' | 'command';
  readonly lane: LaneSpec;
  readonly route: ReplyRoute;
  readonly authority: Authority;
  readonly content: InboxContent;
  readonly bundle?: Bundle;
  /**
   * Whether it passes the mention gate by itself. One that does not is remembered as context, unless
   * a sibling of its bundle passes.
   */
  readonly passesGate: boolean;
  /** Unmentioned messages remembered per lane. */
  readonly contextLimit: number;
};

/** Parts that belong together: an album, a text the client split. */
export type Bundle = {
  readonly name: string;
  /** Parts are waited for until this long after the last one, ms. */
  readonly windowMs: number;
  /** The name is used for one message only: a part that comes after the others were taken belongs to it too. */
  readonly isOneMessage?: true;
};
