import { type Additions, bigint, bigintOrNull, text, textOrNull } from './notation.ts';

/** Questions about tool calls, and what people have allowed for longer. */
export const addApprovals = {
  tables: {
    callApprovals: {
      columns: {
        id: text,
        runId: text,
        messageId: text,
        callId: text,
        laneKey: text,
        grantLane: text,
        tool: text,
        input: text,
        shown: text,
        digest: text,
        authority: text,
        runAuthority: text,
        askers: text,
        state: text,
        decidedBy: textOrNull,
        createdAt: bigint,
        expiresAt: bigint,
        endedAt: bigintOrNull,
      },
      key: ['id'],
      indexes: {
        callApprovalsCall: { on: ['runId', 'messageId', 'callId'], isUnique: true },
        callApprovalsOpen: { on: ['expiresAt'], where: `"state" = 'open'` },
      },
    },
    grants: {
      columns: {
        id: text,
        laneKey: text,
        tool: text,
        digest: text,
        shown: text,
        authority: text,
        grantedBy: text,
        createdAt: bigint,
        expiresAt: bigint,
        revokedBy: textOrNull,
        endedAt: bigintOrNull,
      },
      key: ['id'],
      indexes: { grantsLive: { on: ['laneKey', 'tool'], where: `"endedAt" is null` } },
    },
  },
} satisfies Additions;
