import { ParleyError } from '#contracts/errors.ts';
import { accountId, channelId, conversationId, messageId } from '#contracts/ids.ts';
import type { StepTx, StoreCommand } from '../base/command.ts';
import { accountKeyOf, conversationKeyOf } from '../base/conversation-key.ts';
import { newRowId } from '../base/row-id.ts';
import { recordDelivery } from '../delivery/claim-delivery.ts';
import type { ClaimTerms } from '../lanes/claim-due.ts';
import type { ClaimedRun } from '../lanes/claim-lane.ts';
import { type AnswerResult, commitAnswer } from '../lanes/commit-answer.ts';
import { callIdOf } from '../money/model-calls.ts';
import { claimAccount } from '../processes/accounts.ts';
import { acceptBatch } from './accept-batch.ts';
import type { Proposal } from './proposal.ts';

/** Message of the fault that ends a completed rehearsal. */
export const rehearsalOver = 'The rehearsal is over.';

/**
 * Plays a message of a nonexistent conversation from arrival to delivery, and undoes it all by throwing `internal`, so
 * that the first message after a start finds every statement compiled and prepared. Never resolves.
 */
export const rehearseMessage: StoreCommand<ClaimTerms, never> = {
  name: 'rehearseMessage',
  run: async (tx, terms) => {
    const { holder, leaseMs } = terms;
    const lease = await claimAccount.run(tx, { account, holder, leaseMs });
    if (lease.kind === 'busy') throw new ParleyError('internal', 'Another process is rehearsing.');
    const arrival = { account, epoch: lease.epoch, holder, proposals: [aMessage()], links, cursor: '' };
    const { runs } = await acceptBatch.run(tx, { ...arrival, claims: terms });
    for (const run of runs) await deliver(tx, terms, await answer(tx, terms, run));
    throw new ParleyError('internal', rehearsalOver);
  },
};

/** A route that leads nowhere: no channel has its name. */
export const rehearsalRoute = {
  channel: channelId('rehearsal'),
  account: accountId('bot'),
  conversation: conversationId('nobody'),
  replyTo: messageId('1'),
};
const account = accountKeyOf(rehearsalRoute);
const links = { peers: ['rehearsal:nobody'], identities: [], accounts: [] };
const settings = { mode: 'steer', debounceMs: 0, quietMs: 0, cap: 1, drop: 'summarize' } as const;

function aMessage(): Proposal {
  const lane = { key: account, class: 'main', agentId: '', chatKind: 'dm', settings } as const;
  const sender = { id: 'nobody', name: '' };
  const content = { text: 'hello', prompt: 'hello', sender, sentAt: 0, attachments: [] };
  const item = {
    id: newRowId(),
    kind: 'message',
    lane: { ...lane, newSessionId: newRowId() },
    route: rehearsalRoute,
    // An owner's first message needs one more statement.
    authority: 'owner',
    content,
    passesGate: true,
    contextLimit: 1,
  } as const;
  return {
    eventKey: 'message:1',
    kind: 'message',
    conversationKey: conversationKeyOf(rehearsalRoute),
    messageId: rehearsalRoute.replyTo,
    senderId: sender.id,
    standing: 'none',
    decision: { kind: 'accept', item },
  };
}

const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };

function answer(tx: StepTx, terms: ClaimTerms, run: ClaimedRun): Promise<AnswerResult> {
  const { laneKey, epoch, runId, sessionId, model } = run;
  const text = { text: 'hello', spans: [] };
  const end = { state: 'settled', usage, cost: 1, model } as const;
  return commitAnswer.run(tx, {
    ...{ laneKey, epoch, runId, framing: terms.framing },
    delivery: 'one-at-a-time',
    message: { id: newRowId(), sessionId, parts: [{ type: 'text', data: { text: text.text } }], model },
    modelCalls: run.openCall === undefined ? [] : [{ id: callIdOf(epoch, 1), latencyMs: 0, end }],
    parts: [{ route: rehearsalRoute, content: { kind: 'text', text }, purpose: 'reply' }],
    preview: undefined,
    outcome: 'answered',
    mayKeepLane: true,
    sender: policyOf(terms),
  });
}

async function deliver(tx: StepTx, terms: ClaimTerms, { claimed }: AnswerResult): Promise<void> {
  if (claimed?.delivery.kind !== 'part') return;
  const { conversationKey, delivery } = claimed;
  await recordDelivery.run(tx, {
    ...{ ...policyOf(terms), conversationKey, epoch: delivery.epoch, partKey: delivery.part.key },
    result: { kind: 'sent', receipts: [messageId('2')] },
    claimsNext: true,
  });
}

function policyOf({ holder, leaseMs }: ClaimTerms) {
  return { holder, leaseMs, repeatSafeMs: 0, resendUnknown: false };
}
