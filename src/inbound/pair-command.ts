/** `/pair`, and a code that came with `/start`: for an owner in a direct conversation. */
import { timeText } from '../logging/time-text.ts';
import { platformRef } from '../sessions/platform-ref.ts';
import {
  type AccessList,
  type ApprovedPerson,
  type PendingRequest,
  readAccess,
} from '../store/access/operate-access.ts';
import { personLabel } from '../store/access/person-label.ts';
import type { Store } from '../store/base/command.ts';
import type { CommandEffect, CommandReplies } from '../store/intake/proposal.ts';
import type { Notices } from '../texts/notices.ts';
import { fillNotice } from '../texts/notices.ts';
import type { AccessPolicy } from './access-policy.ts';
import type { PairRequest } from './pair-request.ts';
import { hashPairingCode } from './pairing.ts';
import type { CommandArrival } from './propose.ts';

export type PairDeps = {
  readonly store: Store;
  readonly gate: { readonly access: AccessPolicy; readonly notices: Notices };
};

export type Decided = { readonly effect: CommandEffect; readonly replies: Omit<CommandReplies, 'route'> };

/** How many of each `/pair list` shows. */
const shown = 20;

export async function decidePair(
  { store, gate }: PairDeps,
  { arrival, event }: CommandArrival,
  request: PairRequest,
): Promise<Decided> {
  const { notices } = gate;
  const { route, sender } = arrival.envelope;
  switch (request.kind) {
    case 'list': {
      const list = await store.read(readAccess, { limit: shown });
      return { effect: { kind: 'none' }, replies: { done: describeAccess(list, arrival.now) } };
    }
    case 'approve': {
      const { code } = request;
      const offer = { to: platformRef(route.channel, sender.id), in: event.conversationKey };
      return {
        effect: { kind: 'pair-show', codeHash: hashPairingCode(code), offer },
        replies: {
          done: fillNotice(notices.pairingConfirm, { code }),
          nothing: notices.pairingUnknown,
          limited: notices.pairingLimited,
        },
      };
    }
    case 'confirm': {
      const approval = {
        codeHash: hashPairingCode(request.code),
        by: platformRef(route.channel, sender.id),
        role: 'user',
        text: notices.pairingApproved,
        offeredIn: event.conversationKey,
      } as const;
      return {
        effect: { kind: 'pair-approve', approval },
        replies: {
          done: notices.pairingDone,
          nothing: notices.pairingUnasked,
          limited: notices.pairingLimited,
        },
      };
    }
    case 'revoke': {
      const { ref } = request;
      const isNamed = gate.access.owners.has(ref) || gate.access.allowFrom.has(ref);
      const still = isNamed ? ` ${fillNotice(notices.pairingStillNamed, { who: ref })}` : '';
      return {
        effect: { kind: 'pair-revoke', ref },
        replies: { done: `${notices.pairingRevoked}${still}`, nothing: `${notices.pairingNobody}${still}` },
      };
    }
    default:
      return request satisfies never;
  }
}

/** A code that came with a link approves nobody: an owner is told whom it would let in. */
export function decideStartCode(
  notices: Notices,
  { code, otherwise }: { code: string; otherwise: string },
): Decided {
  return {
    effect: { kind: 'pair-show', codeHash: hashPairingCode(code) },
    replies: {
      done: fillNotice(notices.pairingAsked, { code }),
      nothing: otherwise,
      limited: notices.pairingLimited,
    },
  };
}

export function describeAccess({ requests, people }: AccessList, now: number): string {
  const lines = [...requests.map((request) => requestLine(request, now)), ...people.map(personLine)];
  return lines.length === 0 ? 'Nobody asks to be let in, and nobody was let in by a code.' : lines.join('\n');
}

function requestLine(request: PendingRequest, now: number): string {
  const { account, expiresAt } = request;
  const minutes = Math.max(1, Math.ceil((expiresAt - now) / 60_000));
  return `asks: ${personLabel(request)} at ${account}, for ${minutes} more minutes`;
}

function personLine(person: ApprovedPerson): string {
  const { account, role, approvedAt, approvedBy } = person;
  const since = timeText(approvedAt).slice(0, 10);
  return `${role}: ${personLabel(person)} at ${account}, since ${since} by ${approvedBy}`;
}
