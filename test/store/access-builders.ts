import { hashPairingCode } from '../../src/commands/one-time-code.ts';
import type { AccountId, ChannelId, ConversationId } from '../../src/contracts/ids.ts';
import type { ReplyRoute } from '../../src/contracts/route.ts';
import { type Approval, type Approved, approvePairing } from '../../src/store/access/approve-pairing.ts';
import { approveOnConsole } from '../../src/store/access/operate-access.ts';
import { type Requested, requestPairing } from '../../src/store/access/request-pairing.ts';
import type { SenderRole } from '../../src/store/access/sender-roles.ts';
import type { StepTx, Store, StoreQuery } from '../../src/store/base/command.ts';
import { conversationKeyOf } from '../../src/store/base/conversation-key.ts';
import { acceptBatch } from '../../src/store/intake/accept-batch.ts';
import type { AcceptOutput, Proposal } from '../../src/store/intake/proposal.ts';
import { claimAccount } from '../../src/store/processes/accounts.ts';
import { aLane, aMessage, unique } from './builders.ts';

/** A bot account of the test's own, and what people send to it. */
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
    /** The peer, a stranger so far, writes and would be shown this code. */
    asks: (peer: string, code: string, through: Store = store) =>
      accept([aRequest({ peer, code, route: routeOf(peer) })], through),
    /** The peer writes, and is let in by what the door knows of them. */
    says: (peer: string, standing: SenderRole, text = 'hi') => {
      const route = routeOf(peer);
      const message = aMessage({
        conversation: peer,
        text,
        sender: peer,
        item: { route, lane: laneOf(peer), authority: standing === 'owner' ? 'owner' : 'member' },
      });
      return accept([{ ...message, conversationKey: conversationKeyOf(route), standing }]);
    },
  };
}

/** A request as a step of its own, for a test that has the transaction in hand. */
export function askIn(
  tx: StepTx,
  { account, peer, code }: { account: string; peer: string; code: string },
): Promise<Requested> {
  const [channel = '', bot = ''] = account.split('/');
  const route: ReplyRoute = {
    channel: channel as ChannelId,
    account: bot as AccountId,
    conversation: peer as ConversationId,
  };
  const { decision, eventKey } = aRequest({ peer, code, route });
  if (decision.kind !== 'pair') throw new Error('that is no request');
  return requestPairing(tx, { account, peerId: peer, noticeKey: eventKey, request: decision.request });
}

type Asking = { readonly peer: string; readonly code: string; readonly route: ReplyRoute };

export function aRequest({ peer, code, route }: Asking): Proposal {
  return {
    eventKey: unique('message'),
    kind: 'message',
    conversationKey: conversationKeyOf(route),
    senderId: peer,
    standing: 'none',
    decision: {
      kind: 'pair',
      request: {
        id: crypto.randomUUID(),
        ref: `test:${peer}`,
        name: `Person ${peer}`,
        route,
        codeHash: hashPairingCode(code),
        text: `Your code: ${code}`,
        validMs: 3_600_000,
        maxPending: 3,
      },
    },
  };
}

export function anApproval(code: string, over: Partial<Approval> = {}): Approval {
  return { codeHash: hashPairingCode(code), by: 'console', role: 'user', ...over };
}

export function approve(store: Store, code: string, over: Partial<Approval> = {}): Promise<Approved> {
  return store.write(approveOnConsole, anApproval(code, over));
}

export function approveIn(tx: StepTx, code: string): Promise<Approved> {
  return approvePairing(tx, anApproval(code));
}

export type AccessRows = {
  readonly people: readonly { readonly peerId: string; readonly role: string }[];
  /** Those that can still be approved. */
  readonly pending: readonly string[];
  readonly ledger: readonly string[];
  /** What the bot has to say to people, oldest first. */
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
