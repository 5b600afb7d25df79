import { lockDecision } from '../access/decide-approval.ts';
import { readButton } from '../approvals/ask.ts';
import type { StepTx } from '../base/command.ts';
import type { AcceptInput, Proposal } from './proposal.ts';

/**
 * Locks what commands and presses need that comes before the batch's own account, or between its lanes and its
 * conversations. Returns the events, with what the commands have found for themselves.
 */
export async function lockAhead(
  tx: StepTx,
  { account, proposals }: AcceptInput,
): Promise<readonly Proposal[]> {
  const locked: Proposal[] = [];
  for (const proposal of proposals) {
    const { decision, conversationKey } = proposal;
    if (decision.kind === 'press') {
      const button = readButton(decision.data);
      if (button) await lockDecision(tx, { ...button, by: decision.by }, { account });
    }
    const lock = decision.kind === 'command' ? tx.chatCommands.get(decision.command)?.lock : undefined;
    if (decision.kind !== 'command' || !lock) {
      locked.push(proposal);
      continue;
    }
    const input = await lock(tx, { account, conversationKey, lane: decision.lane }, decision.input);
    locked.push({ ...proposal, decision: { ...decision, input } });
  }
  return locked;
}
