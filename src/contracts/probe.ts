/**
 * Named points around the durable steps. In production the probe does nothing; the crash tests pass one
 * that kills the process there.
 */
export interface Probe {
  reach(point: KillPoint): void;
}

export type KillPoint =
  | 'received'
  | 'accepted'
  | 'item-enqueued'
  | 'command-applied'
  | 'approval-asked'
  | 'approval-decided'
  | 'wait-expired'
  | 'fetched'
  | 'media-read'
  | 'woken'
  | 'claimed'
  | 'taken'
  | 'call-reserved'
  | 'model-called'
  | 'streaming'
  | 'preview-shown'
  | 'preview-sent'
  | 'tool-started'
  | 'tool-finished'
  | 'parked'
  | 'settled'
  | 'steered'
  | 'turn-committed'
  | 'summary-committed'
  | 'finished'
  | 'outbox-claimed'
  | 'sending'
  | 'sent-not-marked'
  | 'marked'
  | 'handing-over'
  | 'child-reserved'
  | 'child-finished'
  | 'tree-stopped'
  | 'task-dispatched'
  | 'reply-recorded'
  | 'aggregating'
  | 'projected';

/** The probe of production: it does nothing. */
export const noProbe: Probe = { reach: () => undefined };
