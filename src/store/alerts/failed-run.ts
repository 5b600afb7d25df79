import type { OutboundContent } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Tx } from '../base/command.ts';
import { conversationKeyOf } from '../base/conversation-key.ts';
import { openAlert } from './note-alert.ts';

export type FailedRun = {
  readonly runId: string;
  readonly outcomeReason?: string;
  readonly parts: readonly {
    readonly route: ReplyRoute;
    readonly content: OutboundContent;
    readonly purpose: string;
  }[];
};

/** Alerts the owner to why a run failed if its group only sees a reaction; does nothing for any other end. */
export async function alertFailedRun(tx: Tx, { runId, outcomeReason = '', parts }: FailedRun): Promise<void> {
  const sign = parts.find(({ content, purpose }) => purpose === 'notice' && content.kind === 'reaction');
  if (sign === undefined) return;
  const values = { reason: outcomeReason.replaceAll('_', ' '), run: runId };
  await openAlert(tx, { kind: 'run-failed', subject: conversationKeyOf(sign.route), values });
}
