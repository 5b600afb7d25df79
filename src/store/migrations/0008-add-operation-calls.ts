import { type Additions, bigint, text } from './notation.ts';

/** Operations that were called with an idempotency key. */
export const addOperationCalls = {
  tables: {
    operationCalls: {
      columns: { key: text, digest: text, result: text, createdAt: bigint },
      key: ['key'],
      indexes: { operationCallsAge: { on: ['createdAt'] } },
    },
  },
} satisfies Additions;
