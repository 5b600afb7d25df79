import { lockDecision } from '../access/decide-approval.ts';
import { readButton } from '../approvals/ask.ts';
import type { StepTx } from '../base/command.ts';
import type { AcceptInput, Proposal } from './proposal.ts';

/**
 * Acquires the locks of commands and presses that must come before the batch's own account, or between its lanes and
 * its conversations. Returns the events, with the input that the commands' own lock steps returned.
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
