import type { Acceptance } from '#contracts/acceptance.ts';
import { approvePairing, showRequest } from '../access/approve-pairing.ts';
import { personLabel } from '../access/person-label.ts';
import { revokeAccess } from '../access/revoke-access.ts';
import type { Tx } from '../base/command.ts';
import type { LaneSpec } from '../base/lane-spec.ts';
import { ensureConversation, insertPart } from '../delivery/insert-part.ts';
import { ensureLane, type Lane, takeSeq } from '../rows/lane-row.ts';
import { changeSettings } from '../rows/lane-settings.ts';
import type { Accepting } from './accepting.ts';
import { changeItem } from './change-item.ts';
import type { CommandEffect, CommandFinding, Decision } from './proposal.ts';
import { stop } from './stop.ts';

type CommandDecision = Extract<Decision, { kind: 'command' }>;
/** An effect's result, and the values for its answer. */
type Finding =
  | CommandFinding
  | { readonly found: CommandFinding; readonly values: Readonly<Record<string, string | number>> };

/** A command that acts at once, past the lane: its effect, its answer and its ledger row are one transaction. */
export async function applyCommand(
  tx: Tx,
  accepting: Accepting,
  decision: CommandDecision,
): Promise<Acceptance> {
  const lane = await ensureLane(tx, decision.lane);
  const finding = await carryOut(tx, lane, { accepting, effect: decision.effect, spec: decision.lane });
  const { found, values } = typeof finding === 'string' ? { found: finding, values: {} } : finding;
  const text = fill(decision.replies[found], values);
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

/** Names without a value stay: the text may be somebody's own words. */
function fill(text: string | undefined, values: Readonly<Record<string, string | number>>) {
  return text?.replace(/\{(\w+)\}/g, (whole, name: string) =>
    Object.hasOwn(values, name) ? String(values[name]) : whole,
  );
}

type Ordered = {
  readonly accepting: Accepting;
  readonly effect: CommandEffect;
  readonly spec: LaneSpec;
};

async function carryOut(tx: Tx, lane: Lane, { accepting, effect, spec }: Ordered): Promise<Finding> {
  switch (effect.kind) {
    case 'none':
      return 'done';
    case 'stop':
      return stop(tx, lane, { accepting, effect });
    case 'queue': {
      const { change } = effect;
      const settings = await changeSettings(tx, lane, { change, configured: spec.settings });
      const { mode, debounceMs: debounce, quietMs: quiet, cap, drop } = settings;
      return { found: 'done', values: { mode, debounce, quiet, cap, drop } };
    }
    case 'item':
      return changeItem(tx, lane, { ...effect, effects: accepting.effects });
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
      if (shown.kind === 'asks') return { found: 'done', values: { who: personLabel(shown) } };
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
  return { found: 'done', values: { who: personLabel(approved) } };
}

async function revoke(tx: Tx, { accepting, effect }: Applying<'pair-revoke'>): Promise<Finding> {
  const { people, requests, cancels, wakes } = await revokeAccess(tx, effect);
  accepting.effects.cancels.push(...cancels);
  accepting.effects.wakes.push(...wakes);
  return { found: people + requests > 0 ? 'done' : 'nothing', values: { who: effect.ref } };
}
