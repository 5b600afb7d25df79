import { hashPairingCode, newApprovalId } from '../../src/commands/one-time-code.ts';
import type { AccountId, ChannelId, ConversationId } from '../../src/contracts/ids.ts';
import type { ReplyRoute } from '../../src/contracts/route.ts';
import { approveOnConsole } from '../../src/store/access/operate-access.ts';
import {
  type Approval,
  type ApprovalResult,
  approvePairing,
  type PairingResult,
  requestPairing,
} from '../../src/store/access/pairing.ts';
import type { Decider, SenderRole } from '../../src/store/access/sender-roles.ts';
import type { StepTx, Store, StoreQuery } from '../../src/store/base/command.ts';
import { noEffects } from '../../src/store/base/effects.ts';
import { conversationKeyOf } from '../../src/store/base/keys.ts';
import { acceptBatch } from '../../src/store/intake/accept-batch.ts';
import type { AcceptOutput, Proposal } from '../../src/store/intake/proposal.ts';
import { claimAccount } from '../../src/store/processes/accounts.ts';
import { fillText, textsFor } from '../../src/texts/chat-texts.ts';
import { aLane, aMessage, unique } from './builders.ts';

/** Returns a bot account that no other test uses, and what people send to it. */
export async function aBot(store: Store) {
  const bot = unique('bot');
  const account = `test/${bot}`;
  const holder = unique('boot');
  const lease = await store.write(claimAccount, { account, holder, leaseMs: 600_000 });
  if (lease.kind !== 'held') throw new Error('the account is busy');
  const routeOf = (peer: string): ReplyRoute => ({
    channel: 'test' as ChannelId,
    account: bot as AccountId,
    conversation: peer as ConversationId,
  });
  const accept = (proposals: readonly Proposal[], through: Store = store): Promise<AcceptOutput> =>
    through.write(acceptBatch, { account, epoch: lease.epoch, holder, proposals });
  const laneOf = (peer: string) => aLane(`${bot}-${peer}`);
  return {
    account,
    accept,
    laneOf,
    /** Lets the peer, still a stranger, write; the reply would show this code. */
    asks: (peer: string, code: string, through: Store = store) =>
      accept([aRequest({ peer, code, route: routeOf(peer) })], through),
    /** Lets the peer write; intake decides by this stored role. */
    says: (peer: string, role: SenderRole, text = 'hi') => {
      const route = routeOf(peer);
      const message = aMessage({
        conversation: peer,
        text,
        sender: peer,
        item: { route, lane: laneOf(peer), authority: role === 'owner' ? 'owner' : 'member' },
      });
      return accept([{ ...message, conversationKey: conversationKeyOf(route), role }]);
    },
  };
}

/** Makes a request in a step that the test itself has opened. */
export async function askIn(
  tx: StepTx,
  { account, peer, code }: { account: string; peer: string; code: string },
): Promise<PairingResult['kind']> {
  const [channel = '', bot = ''] = account.split('/');
  const route: ReplyRoute = {
    channel: channel as ChannelId,
    account: bot as AccountId,
    conversation: peer as ConversationId,
  };
  const { decision, eventKey } = aRequest({ peer, code, route });
  if (decision.kind !== 'pair') throw new Error('that is no request');
  const requesting = { account, peerId: peer, noticeKey: eventKey, request: decision.request };
  return (await requestPairing(tx, requesting, noEffects())).kind;
}

type Asking = { readonly peer: string; readonly code: string; readonly route: ReplyRoute };

export function aRequest({ peer, code, route }: Asking): Proposal {
  return {
    eventKey: unique('message'),
    kind: 'message',
    conversationKey: conversationKeyOf(route),
    senderId: peer,
    role: 'none',
    decision: {
      kind: 'pair',
      request: {
        id: newApprovalId(),
        ref: `test:${peer}`,
        name: `Person ${peer}`,
        route,
        code,
        codeHash: hashPairingCode(code),
        command: `approve ${code}`,
        validMs: 3_600_000,
        maxPending: 3,
        owners: [],
        isStart: false,
      },
    },
  };
}

/** Returns what a stranger reads while there is no owner. */
export function shownCode(code: string): string {
  return fillText(textsFor('en').pairingFirst, { command: `approve ${code}`, minutes: 60 });
}

/** The machine's user, who approves. */
export const atConsole = { ref: 'console', label: 'the command line', isOwner: true, role: 'user' } as const;

export function anApproval(code: string, role: Decider['role'] = 'user'): Approval {
  return { of: { codeHash: hashPairingCode(code) }, by: { ...atConsole, role } };
}

export function approve(store: Store, code: string, role?: Decider['role']): Promise<ApprovalResult> {
  return store.write(approveOnConsole, anApproval(code, role));
}

export function approveIn(tx: StepTx, code: string): Promise<ApprovalResult> {
  return approvePairing(tx, anApproval(code), noEffects());
}

export type AccessRows = {
  readonly people: readonly { readonly peerId: string; readonly role: string }[];
  /** The requests that can still be approved. */
  readonly pending: readonly string[];
  readonly ledger: readonly string[];
  /** The bot's queued messages, oldest first. */
  readonly notices: readonly string[];
};

export const readAccessRows: StoreQuery<{ readonly account: string }, AccessRows> = {
  query: 'readAccessRows',
  run: async ({ db }, { account }) => {
    const people = await db
      .selectFrom('people')
      .select(['peerId', 'role'])
      .where('account', '=', account)
      .orderBy('peerId')
      .execute();
    const pending = await db
      .selectFrom('pairings')
      .select('peerId')
      .where('account', '=', account)
      .where('codeHash', 'is not', null)
      .orderBy('peerId')
      .execute();
    const ledger = await db
      .selectFrom('ledger')
      .select(['outcome', 'reason'])
      .where('account', '=', account)
      .orderBy('at')
      .execute();
    const notices = await db
      .selectFrom('outbox')
      .select(['content', 'conversationKey'])
      .where('conversationKey', 'like', `${account}/%`)
      .orderBy('createdAt')
      .orderBy('place')
      .execute();
    return {
      people,
      pending: pending.map(({ peerId }) => peerId),
      ledger: ledger.map(({ outcome, reason }) => `${outcome} ${reason}`),
      notices: notices.map(({ content }) => JSON.parse(content).text.text as string),
    };
  },
};

/** Reads the texts of a person's items, oldest first, and the ledger's outcomes of their messages. */
export const readPendingContent: StoreQuery<
  { readonly senderId: string },
  { readonly content: readonly string[]; readonly ledger: readonly string[] }
> = {
  query: 'readPendingContent',
  run: async ({ db }, { senderId }) => {
    const items = await db
      .selectFrom('inbox')
      .select('content')
      .where('senderId', '=', senderId)
      .orderBy('seq')
      .execute();
    const events = await db
      .selectFrom('ledger')
      .select(['outcome', 'reason'])
      .where('conversationKey', 'like', `%/${senderId}`)
      .orderBy('outcome')
      .execute();
    return {
      content: items.map(({ content }) => JSON.parse(content).text as string),
      ledger: events.map(({ outcome, reason }) => `${outcome} ${reason}`),
    };
  },
};
