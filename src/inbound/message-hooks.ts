/** Has hooks judge messages whose senders have access, and tells them about commands, before anything is stored. */
import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { Hooks } from '../hooks/hooks.ts';
import type { Decision, Proposal } from '../store/intake/proposal.ts';
import type { InboundPolicy } from './inbound-policy.ts';
import { type Arrival, type CommandArrival, laneOf, propose } from './propose.ts';

type HookDeps = { readonly policy: InboundPolicy; readonly hooks?: Hooks };

/** Returns the proposal as `message_received` has left it. Edits are judged like the messages that they replace. */
export async function askHooks(
  { policy, hooks }: HookDeps,
  arrival: Arrival,
  proposal: Proposal,
): Promise<Proposal> {
  const { envelope } = arrival;
  const { event } = envelope;
  const { kind } = proposal.decision;
  if (!hooks?.has('message_received') || (kind !== 'accept' && kind !== 'edit')) return proposal;
  if (event.kind !== 'message' && event.kind !== 'edit') return proposal;
  const { key: sessionKey, agentId } = laneOf(policy, arrival);
  const { eventKey, route, chat, sender } = envelope;
  const { event: seen, end } = await hooks.decide('message_received', {
    ...{ eventKey, sessionKey, agentId, route, chat: chat.kind, text: event.text },
    sender: { id: sender.id, name: sender.name },
    files: event.attachments?.length ?? 0,
  });
  if (end?.kind === 'decided' && end.decision.kind === 'drop') {
    const detail = `${end.owner}: ${end.decision.reason}`;
    return { ...proposal, detail, decision: { kind: 'ignore', reason: 'dropped-by-hook' } };
  }
  if (end?.kind === 'decided')
    return { ...proposal, detail: end.owner, decision: { kind: 'ignore', reason: 'claimed-by-hook' } };
  if (seen.text === event.text) return proposal;
  const decision = decideAgain(policy, arrival, { ...envelope, event: { ...event, text: seen.text } });
  return decision === undefined ? proposal : { ...proposal, decision: withGate(decision, proposal.decision) };
}

/** Decides about the new text, which is never a command: nobody has typed it. */
function decideAgain(
  policy: InboundPolicy,
  arrival: Arrival,
  envelope: InboundEnvelope,
): Decision | undefined {
  const again = propose(policy, { ...arrival, envelope, isRest: true });
  return again.kind === 'proposal' ? again.proposal.decision : undefined;
}

/** Whether a message calls the agent is judged by the words of its sender. */
function withGate(decision: Decision, before: Decision): Decision {
  if (decision.kind !== 'accept' || before.kind !== 'accept') return decision;
  return { ...decision, item: { ...decision.item, passesGate: before.item.passesGate } };
}

/** Tells hooks about a command that its sender may use, before it takes effect. */
export async function tellHooks(hooks: Hooks | undefined, { order, call }: CommandArrival): Promise<void> {
  if (hooks === undefined || order.problem !== undefined) return;
  const { name: command, abortsRun } = order.command;
  const { lane, envelope } = call;
  const { route, sender } = envelope;
  const { key: sessionKey, agentId } = lane;
  const event = { command, sessionKey, agentId, route, sender: { id: sender.id, name: sender.name } };
  await hooks.observe(`command:${command}`, event);
  if (abortsRun) await hooks.observe('before_reset', { sessionKey, command });
}
