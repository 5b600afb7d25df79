import type { Acceptance } from '#contracts/acceptance.ts';
import { ParleyError } from '#contracts/errors.ts';
import { noteCommand } from '../alerts/owner-route.ts';
import type { StepTx } from '../base/command.ts';
import { insertNotice } from '../delivery/insert-notice.ts';
import { ensureLane } from '../rows/lane-row.ts';
import type { AcceptEventInput } from './accept-input.ts';
import type { Decision } from './proposal.ts';

type CommandDecision = Extract<Decision, { kind: 'command' }>;

/** Runs a command that takes effect immediately: its effect, answer and ledger row are one transaction. */
export async function applyCommand(
  tx: StepTx,
  { proposal, input: { account }, effects }: AcceptEventInput,
  { command, input, asked, lane: spec, route }: CommandDecision,
): Promise<Acceptance> {
  const step = tx.chatCommands.get(command);
  if (!step) throw new ParleyError('internal', `There is no chat command named ${command}.`);
  const ensured = await ensureLane(tx, spec);
  const partKey = (name: string) => `${account}:${proposal.eventKey}:${name}`;
  const { senderId, conversationKey } = proposal;
  const laneKey = spec.key;
  const place = { account, senderId, conversationKey, route, laneKey };
  const scene = { ...place, lane: async () => ensured, partKey, effects };
  const { text, isRefused } = await step.run(tx, scene, input);
  if (text !== undefined)
    effects.deliveries.push(await insertNotice(tx, { key: partKey('answer'), route, text, asked, laneKey }));
  if (spec.chatKind === 'dm') await noteCommand(tx, { key: conversationKey, by: senderId });
  return isRefused ? { kind: 'refused', reason: 'not-permitted' } : { kind: 'command', command };
}
