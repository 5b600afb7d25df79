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
   * How long after a message a forward or an album of the same sender still belongs to it, and a text to an album, ms.
   * Absent: it never does.
   */
  readonly joinMs?: number;
  /**
   * Whether it passes the mention gate on its own. If it doesn't, it is remembered as context, unless another item of
   * its bundle passes.
   */
  readonly passesGate: boolean;
  /** How many unmentioned messages are remembered per lane. */
  readonly contextLimit: number;
};

/** Parts that belong together: an album, or a text that the client has split. */
export type Bundle = {
  readonly name: string;
  /** How long to wait for more parts after the last one, ms. */
  readonly windowMs: number;
  /** The name is used for one message only, so a part that comes after the others were taken still belongs to it. */
  readonly isOneMessage?: true;
};
