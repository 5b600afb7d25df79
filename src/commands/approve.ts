/** `/approve` and `/deny`: answers to a question from Parley, where there is no button to press. */

import { platformRef } from '../sessions/identities.ts';
import { type DecisionResult, decideApproval, lockDecision } from '../store/access/decide-approval.ts';
import { type Decider, personLabel } from '../store/access/sender-roles.ts';
import type { Verdict } from '../store/approvals/approval.ts';
import { cleanLabel } from '../texts/untrusted-text.ts';
import { type ChatCommand, type CommandCall, chatCommand } from './chat-command.ts';

type Request = { readonly id: string };

function answer(verdict: Verdict): ChatCommand {
  return chatCommand<Request, Request & { readonly by: Decider }, DecisionResult>({
    name: verdict,
    usage: 'id',
    menu: verdict === 'approve' ? 'approveMenu' : 'denyMenu',
    denial: 'approveDenied',
    isForAnyPlace: true,
    parse: (words) => {
      const id = words.toLowerCase();
      return /^[a-z0-9]{1,32}$/.test(id) ? { id } : { problem: 'approveUsage', values: { name: verdict } };
    },
    right: ({ authority }) => (authority === 'owner' ? 'allowed' : 'denied'),
    load: (_, call, { id }) => ({ id, by: deciderOf(call) }),
    lock: async (tx, place, input) => {
      await lockDecision(tx, { ...input, verdict }, place);
      return input;
    },
    apply: (tx, { effects }, { id, by }) => decideApproval(tx, { id, verdict, by }, effects),
    say: ({ text }) => text,
  });
}

export const approve = answer('approve');
export const deny = answer('deny');

/** Returns the sender of a command as a decider. */
export function deciderOf({ envelope, authority }: CommandCall): Decider {
  const { route, sender } = envelope;
  const ref = platformRef(route.channel, sender.id);
  const label = personLabel({ ref, name: cleanLabel(sender.name) });
  return { ref, label, isOwner: authority === 'owner', role: 'user' };
}
