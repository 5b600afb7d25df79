/** Broken variants of the order in which rows are locked, especially by chat commands and button presses. */
import type { Mutant } from './mutants.ts';

const invariant = 'rows are locked in one order by every step';
const lockOrder = 'test/store/base/lock-order.test.ts';
const noticedBy = (name: string) =>
  ({ test: { file: 'test/inbound/command-locks.test.ts', name }, needsPostgres: true }) as const;

export const lockMutants: readonly Mutant[] = [
  {
    name: 'account of a command locked before others',
    invariant,
    edit: { in: 'lockAhead', find: 'tx.chatCommands.get(decision.command)?.lock', replace: 'undefined' },
    ...noticedBy('or press has the accounts in their order'),
  },
  {
    name: 'account of a press locked before others',
    invariant,
    edit: {
      in: 'lockAhead',
      find: 'if (button) await lockDecision(tx, { ...button, by: decision.by }, { account });',
      replace: '',
    },
    ...noticedBy('or press has the accounts in their order: a press'),
  },
  {
    name: 'attempt counted behind the account',
    invariant,
    edit: {
      in: 'lockPairing',
      find: '(await hasAttempt(tx)) ? await findRequest(tx, of) : undefined',
      replace: 'await findRequest(tx, of)',
    },
    ...noticedBy('counts an attempt before it has an account'),
  },
  {
    name: 'links locked behind the account',
    invariant,
    edit: {
      in: 'lockLinkStep',
      find: 'await lockLinks(tx);',
      replace: 'await lockCommand(tx, place); await lockLinks(tx);',
    },
    ...noticedBy('that links has the row of all links before an account'),
  },
  {
    name: 'a command needs the time before it has asked for it',
    invariant: 'no step makes every later one wait for the time',
    edit: { in: 'lockLinkStep', find: 'await lockLinks(tx);', replace: 'void tx.now; await lockLinks(tx);' },
    test: {
      file: 'test/store/postgres/round-trips.test.ts',
      name: 'take no more after commands and presses',
    },
    needsPostgres: true,
  },
  {
    name: 'lane of a kept message made behind the conversation',
    invariant,
    edit: {
      in: 'lockDecision',
      find: 'await steps[approval.kind].laneOf?.(tx, approval)',
      replace: 'undefined',
    },
    ...noticedBy('or press has the lane of the message that was kept'),
  },
  {
    name: 'lanes of a revoked person locked behind the conversation',
    invariant,
    edit: { in: 'lockRevocation', find: '...work.laneKeys.map((key) => ({ key })),', replace: '' },
    ...noticedBy('that revokes has the lanes of the person'),
  },
  {
    name: 'lanes of stopped sub-agents locked behind the conversation',
    invariant,
    edit: {
      in: 'lockForStop',
      find: 'await lockBelow(tx, lanes.map(({ sessionId }) => sessionId));',
      replace: 'void lanes;',
    },
    ...noticedBy('has the lanes of sub-agents before a conversation: /stop'),
  },
  {
    name: 'lane of a directed sub-agent locked behind the conversation',
    invariant,
    edit: { in: 'lockBranch', find: 'await lockLineage(tx, child.laneKey);', replace: '' },
    also: [{ in: 'lockBranch', find: 'await lockBelow(tx, [childId]);', replace: '' }],
    ...noticedBy('has the lanes of sub-agents before a conversation: /subagents'),
  },
  {
    name: '/new claimed with a conversation locked',
    invariant,
    edit: { in: 'acceptBatch', find: 'views.hasReached ||', replace: '' },
    ...noticedBy('in its lane’s order is left to the next claim'),
  },
  {
    name: 'command stored with what came before it',
    invariant,
    edit: {
      in: 'sliceAtChanges',
      find: 'if (isAlone) slices.push([]); slices.at(-1)',
      replace: 'slices.at(-1)',
    },
    ...noticedBy('or press is stored alone'),
  },
  {
    name: 'conversations locked as they come',
    invariant,
    edit: { in: 'lockOrMake', find: `as key order by key`, replace: `as key` },
    test: { file: lockOrder, name: 'locks conversations in key order: notices to those who wait' },
    needsPostgres: true,
  },
  {
    name: 'conversations of refusals locked as they come',
    invariant,
    edit: { in: 'acceptBatch', find: 'await lockConversations(tx, conversationsTold(input));', replace: '' },
    test: { file: lockOrder, name: 'locks conversations in key order: refusals with a notice' },
    needsPostgres: true,
  },
  {
    name: 'lanes of a dead process locked as they come',
    invariant,
    edit: { in: 'voidLaneLeases', find: "if (tx.dialect === 'postgres')", replace: 'if (tx.now === 0)' },
    test: { file: lockOrder, name: 'locks lanes in key order: the end of a dead process' },
    needsPostgres: true,
  },
  {
    name: 'conversations of dead processes locked one process after the other',
    invariant,
    edit: {
      in: 'lockDeliveries',
      find: `.orderBy('key')`,
      replace: `.orderBy('deliveryEpoch').orderBy('key', 'desc')`,
    },
    test: { file: lockOrder, name: 'locks conversations in key order: the end of two dead processes' },
    needsPostgres: true,
  },
];
