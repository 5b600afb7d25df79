import { type Additions, bigint, integer, text } from './notation.ts';

/** Calls of programs that must not happen twice. */
export const addApiCalls = {
  tables: {
    apiCalls: {
      columns: {
        key: text,
        caller: text,
        digest: text,
        sourceKey: text,
        attempts: integer,
        createdAt: bigint,
      },
      key: ['key'],
      indexes: { apiCallsDigest: { on: ['digest', 'createdAt'] } },
    },
  },
} satisfies Additions;
