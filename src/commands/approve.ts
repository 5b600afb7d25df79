/** `/approve` and `/deny`: answers to a question from Parley, where there is no button to press. */

import type { Authority } from '#contracts/outcome.ts';
import { platformRef } from '../sessions/identities.ts';
import { type DecisionResult, decideApproval, lockDecision } from '../store/access/decide-approval.ts';
import { type Decider, personLabel } from '../store/access/sender-roles.ts';
import type { Verdict } from '../store/approvals/approval.ts';
import { cleanLabel } from '../texts/untrusted-text.ts';
import { type ChatCommand, type CommandCall, chatCommand } from './chat-command.ts';

type Request = { readonly id: string; readonly verdict: Verdict };

function answer(name: 'approve' | 'deny'): ChatCommand {
  return chatCommand<Request, Request & { readonly by: Decider }, DecisionResult>({
    name,
    usage: 'id',
    menu: name === 'approve' ? 'approveMenu' : 'denyMenu',
    denial: 'approveDenied',
    isForAnyPlace: true,
    parse: (words) => {
      const [, id, always] = /^([a-z0-9]{1,32})( always)?$/.exec(words.toLowerCase()) ?? [];
      if (id === undefined || (always !== undefined && name === 'deny'))
        return { problem: 'approveUsage', values: { name } };
      return { id, verdict: always === undefined ? name : 'always' };
    },
    // Each question says who may decide it.
    right: () => 'allowed',
    load: (_, call, request) => ({ ...request, by: deciderOf(call) }),
    lock: async (tx, place, input) => {
      await lockDecision(tx, input, place);
      return input;
    },
    apply: (tx, { effects }, decision) => decideApproval(tx, decision, effects),
    say: ({ text }) => text,
  });
}

export const approve = answer('approve');
export const deny = answer('deny');

/** Returns the sender of a press or a command as a decider. */
export function deciderOf({
  envelope,
  identities,
  authority,
}: Pick<CommandCall, 'envelope' | 'identities'> & { readonly authority: Authority | undefined }): Decider {
  const { route, sender } = envelope;
  const ref = platformRef(route.channel, sender.id);
  const label = personLabel({ ref, name: cleanLabel(sender.name) });
  const identity = identities.get(ref);
  const refs = identity === undefined ? [ref] : identities.accountsOf(identity).map((account) => account.ref);
  return { ref, refs, label, authority, isOwner: authority === 'owner', role: 'user' };
}
