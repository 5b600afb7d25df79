/**
 * Tokens of programs, one row each; rows stay, so that one can still see what a revoked token was. The store has only
 * the hash of a secret. Times are passed in by the caller, as for sign-ins.
 */
import type { Selectable } from 'kysely';
import { type TokenScope, tokenScopes } from '#contracts/token-scope.ts';
import type { StoreCommand, StoreQuery } from '../base/command.ts';
import { changeRow, insertNewRow, type WithoutNulls, withoutNulls } from '../base/row-access.ts';
import type { TokensTable } from '../base/tables.ts';

/** A token without its secret. Absent times: it never expires, wasn't used, isn't revoked. */
export type Token = Omit<WithoutNulls<Selectable<TokensTable>>, 'secretHash' | 'scopes'> & {
  readonly scopes: readonly TokenScope[];
};

/** Maximum number of tokens that aren't revoked. */
export const maxTokens = 100;

export type NewToken = Pick<Token, 'id' | 'name' | 'scopes' | 'createdBy'> & {
  readonly secretHash: string;
  readonly at: number;
  readonly expiresAt?: number;
};

/**
 * Stores a token. A name belongs to one live token, so a repeat is refused as `taken`: nobody knows the secret that a
 * lost answer contained.
 */
export const createToken: StoreCommand<NewToken, 'created' | 'taken' | 'too-many'> = {
  name: 'createToken',
  run: async (tx, { at, scopes, expiresAt, ...token }) => {
    const live = await tx.db.selectFrom('tokens').select('id').where('revokedAt', 'is', null).execute();
    if (live.length >= maxTokens) return 'too-many';
    const row = { ...token, scopes: scopes.join(' '), createdAt: at, expiresAt: expiresAt ?? null };
    const isNew = await insertNewRow(tx, 'tokens', { ...row, lastUsedAt: null, revokedAt: null });
    return isNew ? 'created' : 'taken';
  },
};

/** Revokes the live token with this id or name, and returns its id; undefined if there is none. */
export const revokeToken: StoreCommand<{ readonly which: string; readonly at: number }, string | undefined> =
  {
    name: 'revokeToken',
    run: async (tx, { which, at }) => {
      const row = await tx.db
        .updateTable('tokens')
        .set({ revokedAt: at })
        .where('revokedAt', 'is', null)
        .where((eb) => eb.or([eb('id', '=', which), eb('name', '=', which)]))
        .returning('id')
        .executeTakeFirst();
      return row?.id;
    },
  };

/** Records that a token was just used. For freshness only. */
export const touchToken: StoreCommand<{ readonly id: string; readonly at: number }, void> = {
  name: 'touchToken',
  run: (tx, { id, at }) => changeRow(tx, 'tokens', id, { lastUsedAt: at }),
};

/** Finds the valid token whose secret has this hash. */
export const findToken: StoreQuery<{ readonly secretHash: string; readonly at: number }, Token | undefined> =
  {
    query: 'findToken',
    run: async (tx, { secretHash, at }) => {
      const row = await tx.db
        .selectFrom('tokens')
        .select(shown)
        .where('secretHash', '=', secretHash)
        .where('revokedAt', 'is', null)
        .executeTakeFirst();
      return row === undefined || (row.expiresAt !== null && row.expiresAt <= at) ? undefined : tokenOf(row);
    },
  };

/** How many revoked tokens are listed. */
const maxRevoked = 20;

/** Reads the live tokens, expired ones included, then the latest revoked ones; newest first. */
export const readTokens: StoreQuery<object, readonly Token[]> = {
  query: 'readTokens',
  run: async ({ db }) => {
    const rows = db.selectFrom('tokens').select(shown);
    const live = await rows.where('revokedAt', 'is', null).orderBy('createdAt', 'desc').execute();
    const revoked = rows.where('revokedAt', 'is not', null).orderBy('revokedAt', 'desc').limit(maxRevoked);
    return [...live, ...(await revoked.execute())].map(tokenOf);
  },
};

const shown = [
  ...(['id', 'name', 'scopes', 'createdBy'] as const),
  ...(['createdAt', 'expiresAt', 'lastUsedAt', 'revokedAt'] as const),
] as const;

function tokenOf({ scopes, ...row }: Omit<Selectable<TokensTable>, 'secretHash'>): Token {
  const names = scopes.split(' ');
  return { ...withoutNulls(row), scopes: tokenScopes.filter((scope) => names.includes(scope)) };
}
