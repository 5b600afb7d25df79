import type { Acceptance } from '#contracts/acceptance.ts';
import type { QueueSettings } from '#contracts/queue-settings.ts';
import { approvePairing, showRequest } from '../access/approve-pairing.ts';
import { revokeAccess } from '../access/revoke-access.ts';
import type { Tx } from '../command.ts';
import { ensureConversation, insertPart } from '../delivery/insert-part.ts';
import { ensureLane, type Lane, settingsOf, takeSeq } from '../lanes/lane-row.ts';
import type { Accepting } from './accepting.ts';
import type { CommandEffect, Decision } from './proposal.ts';
import { stop } from './stop.ts';

type CommandDecision = Extract<Decision, { kind: 'command' }>;
type Found = 'done' | 'nothing' | 'notPermitted' | 'limited';
/** What an effect found, and whom it concerned. */
type Finding = Found | { readonly found: Found; readonly who: string };

/** A command that acts at once, past the lane: its effect, its answer and its ledger row are one transaction. */
export async function applyCommand(
  tx: Tx,
  accepting: Accepting,
  decision: CommandDecision,
): Promise<Acceptance> {
  const lane = await ensureLane(tx, decision.lane);
  const finding = await carryOut(tx, lane, { accepting, effect: decision.effect });
  const { found, who } = typeof finding === 'string' ? { found: finding, who: '' } : finding;
  const text = decision.replies[found]?.replaceAll('{who}', () => who);
  if (text !== undefined) {
    const { proposal, input, effects } = accepting;
    const key = `${input.account}:${proposal.eventKey}:answer`;
    const timeline = { laneKey: lane.key, seq: await takeSeq(tx, lane.key) };
    const content = { kind: 'text', text: { text, spans: [] } } as const;
    effects.deliveries.push(
      await insertPart(tx, { key, route: decision.replies.route, content, purpose: 'notice', timeline }),
    );
  }
  if (found === 'notPermitted') return { kind: 'refused', reason: 'not-permitted' };
  return { kind: 'command', command: decision.command };
}

async function carryOut(
  tx: Tx,
  lane: Lane,
  { accepting, effect }: { accepting: Accepting; effect: CommandEffect },
): Promise<Finding> {
  switch (effect.kind) {
    case 'none':
      return 'done';
    case 'stop':
      return stop(tx, lane, { accepting, effect });
    case 'queue':
      await changeQueue(tx, lane, effect.change);
      return 'done';
    case 'activation': {
      const key = accepting.proposal.conversationKey;
      await ensureConversation(tx, key);
      await tx.db
        .updateTable('conversations')
        .set({ activation: effect.value })
        .where('key', '=', key)
        .execute();
      return 'done';
    }
    case 'pair-approve':
      return approve(tx, { accepting, effect });
    case 'pair-show': {
      const shown = await showRequest(tx, effect);
      if (shown.kind === 'asks') return { found: 'done', who: `${shown.name} (${shown.ref})` };
      return shown.kind === 'limited' ? 'limited' : 'nothing';
    }
    case 'pair-revoke':
      return revoke(tx, { accepting, effect });
    default:
      return effect satisfies never;
  }
}

type Applying<Kind> = {
  readonly accepting: Accepting;
  readonly effect: Extract<CommandEffect, { kind: Kind }>;
};

async function approve(tx: Tx, { accepting, effect }: Applying<'pair-approve'>): Promise<Finding> {
  const approved = await approvePairing(tx, effect.approval);
  if (approved.kind === 'limited') return 'limited';
  if (approved.kind === 'unknown') return 'nothing';
  accepting.effects.deliveries.push(approved.conversationKey);
  return { found: 'done', who: `${approved.name} (${approved.ref})` };
}

async function revoke(tx: Tx, { accepting, effect }: Applying<'pair-revoke'>): Promise<Finding> {
  const { people, requests, cancels } = await revokeAccess(tx, effect);
  accepting.effects.cancels.push(...cancels);
  return { found: people + requests > 0 ? 'done' : 'nothing', who: effect.ref };
}

async function changeQueue(tx: Tx, lane: Lane, change: Partial<QueueSettings> | 'reset'): Promise<void> {
  if (change === 'reset') {
    // The configuration's settings return with the next accepted message.
    await tx.db.updateTable('lanes').set({ overrides: null }).where('key', '=', lane.key).execute();
    return;
  }
  const settings = { ...settingsOf(lane), ...change };
  await tx.db
    .updateTable('lanes')
    .set({ ...settings, overrides: JSON.stringify(change) })
    .where('key', '=', lane.key)
    .execute();
}
