import { type Additions, bigint, bigintOrNull, text } from './notation.ts';

/** Tokens for programs. */
export const addTokens = {
  tables: {
    tokens: {
      columns: {
        id: text,
        name: text,
        scopes: text,
        secretHash: text,
        createdBy: text,
        createdAt: bigint,
        expiresAt: bigintOrNull,
        lastUsedAt: bigintOrNull,
        revokedAt: bigintOrNull,
      },
      key: ['id'],
      indexes: {
        tokensSecret: { on: ['secretHash'], isUnique: true },
        tokensLive: { on: ['name'], where: `"revokedAt" is null`, isUnique: true },
      },
    },
  },
} satisfies Additions;
