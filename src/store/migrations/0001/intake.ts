import { bigint, bigintOrNull, integer, type SchemaOf, text, textOrNull } from '../notation.ts';

/** Processes and restores, and the tables that intake writes: arrived events and what became of them. */
export const intakeTables = {
  boots: {
    columns: { id: text, folder: text, startedAt: bigint, role: text },
    key: ['id'],
  },
  restores: {
    columns: { id: text, madeAt: text, isActed: integer },
    key: ['id'],
  },
  accounts: {
    columns: {
      key: text,
      epoch: bigint,
      holder: textOrNull,
      leaseUntil: bigint,
      cursor: textOrNull,
      commandsHash: textOrNull,
    },
    key: ['key'],
    fill: 50,
  },
  anchors: {
    columns: { account: text, conversation: text, anchor: text },
    key: ['account', 'conversation'],
  },
  ledger: {
    columns: {
      account: text,
      eventKey: text,
      kind: text,
      outcome: text,
      reason: textOrNull,
      inboxId: textOrNull,
      laneKey: textOrNull,
      conversationKey: text,
      messageId: textOrNull,
      raw: textOrNull,
      fingerprint: textOrNull,
      at: bigint,
    },
    key: ['account', 'eventKey'],
    indexes: { ledgerMessage: { on: ['messageId', 'conversationKey'] } },
  },
  inbox: {
    columns: {
      id: text,
      laneKey: text,
      seq: bigint,
      rank: integer,
      kind: text,
      state: text,
      outcome: textOrNull,
      outcomeReason: textOrNull,
      bundle: textOrNull,
      account: text,
      conversationKey: text,
      messageId: textOrNull,
      senderId: text,
      authority: text,
      route: textOrNull,
      source: `${text} default 'platform'`,
      sourceKey: textOrNull,
      reach: `${text} default 'mode'`,
      reservedRunId: textOrNull,
      content: text,
      isFetching: integer,
      dueAt: bigint,
      runId: textOrNull,
      transcriptId: textOrNull,
      createdAt: bigint,
      notifiedAt: bigintOrNull,
      answer: textOrNull,
      isKept: `${integer} default 0`,
    },
    key: ['id'],
    indexes: {
      inboxOrder: { on: ['laneKey', 'seq'], isUnique: true },
      inbox_sourceKey: { on: ['sourceKey'], isUnique: true, where: `"sourceKey" is not null` },
      inbox_reservedRunId: { on: ['reservedRunId'], isUnique: true, where: `"reservedRunId" is not null` },
      inboxMessage: { on: ['conversationKey', 'messageId'] },
      inboxOpen: { on: ['laneKey', 'rank', 'seq'], where: `"state" in ('held', 'waiting')` },
      // Messages without a waiting notice: only a few at a time, each for a few seconds.
      inboxUnnotified: { on: ['createdAt'], where: `"state" = 'waiting' and "notifiedAt" is null` },
      inboxRun: { on: ['runId'], where: `"runId" is not null` },
      // By lane too, so that pages have a definite order.
      inboxDue: { on: ['dueAt', 'laneKey'], where: `"state" in ('held', 'waiting')` },
      inboxFetching: { on: ['isFetching'], where: `"state" = 'waiting' and "isFetching" = 1` },
    },
  },
  itemChanges: {
    columns: { id: text, laneKey: text, inboxId: text, kind: text, by: text, at: bigint },
    key: ['id'],
    indexes: { itemChangesOf: { on: ['inboxId'] } },
  },
  groupContext: {
    columns: {
      laneKey: text,
      seq: bigint,
      conversationKey: text,
      messageId: textOrNull,
      content: text,
      shownInRun: textOrNull,
    },
    key: ['laneKey', 'seq'],
    indexes: {
      // Shown rows remain, and accumulate over a lane's lifetime.
      groupContextUnshown: { on: ['laneKey', 'seq'], where: `"shownInRun" is null` },
      groupContextMessage: { on: ['conversationKey', 'messageId'], where: `"messageId" is not null` },
    },
  },
} satisfies SchemaOf<
  'boots' | 'restores' | 'accounts' | 'anchors' | 'ledger' | 'inbox' | 'itemChanges' | 'groupContext'
>;
