import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { tokenScopes } from '#contracts/token-scope.ts';
import { stripText } from '../logging/redaction.ts';
import { newRowId } from '../store/base/keys.ts';
import { createToken, maxTokens, readTokens, revokeToken } from '../store/sign-ins/tokens.ts';
import { operation, Refusal, type StoreDeps } from './operation.ts';

export type TokensDeps = StoreDeps & {
  /** Cuts the open requests of a token that was just revoked. */
  cutToken(id: string): void;
};

/** Begins every token, so that scanners for leaked secrets, and people, recognize one. */
export const tokenPrefix = 'parley_';

/** Returns what the store keeps of a secret of 256 random bits: too many to be guessed from a hash. */
export function hashToken(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}

const scope = z.enum(tokenScopes);
const name = z.string().regex(/^[\p{L}\p{N}][\p{L}\p{N} ._-]{0,59}$/u, {
  error: 'A token’s name has at most 60 letters, digits, spaces, dots, hyphens and underscores.',
});
const dayMs = 86_400_000;

/** The secret is in this answer only. */
export const addToken = operation({
  name: 'tokens/create',
  method: 'POST',
  right: 'owner',
  once: 'secret',
  summary: 'Creates a token for a program; only this answer contains its secret',
  input: z.strictObject({
    name,
    scopes: z.array(scope).min(1).max(tokenScopes.length).describe('What it may be used for'),
    days: z.int().min(1).max(3650).exactOptional().describe('When it expires; absent: never'),
  }),
  answer: z.object({ id: z.string(), secret: z.string() }),
  refusals: ['not_possible'],
  run: async ({ store }: StoreDeps, form, { by }) => {
    const [id, at] = [newRowId(), Date.now()];
    const secret = `${tokenPrefix}${randomBytes(32).toString('base64url')}`;
    const created = await store.write(createToken, {
      ...{ id, at, name: form.name, createdBy: by, secretHash: hashToken(secret) },
      scopes: tokenScopes.filter((one) => form.scopes.includes(one)),
      ...(form.days !== undefined && { expiresAt: at + form.days * dayMs }),
    });
    if (created === 'created') return { id, secret };
    return new Refusal(
      'not_possible',
      created === 'taken'
        ? `There is a token named ${form.name}. Take another name, or revoke it first: ${parleyCommand} tokens revoke "${form.name}"`
        : `There are ${maxTokens} tokens. Revoke one first: ${parleyCommand} tokens list`,
    );
  },
});

export const listTokens = operation({
  name: 'tokens',
  method: 'GET',
  right: 'owner',
  summary: 'Lists the tokens of programs, newest first, then those revoked lately; never their secrets',
  answer: z.object({
    tokens: z
      .array(
        z.object({
          id: z.string(),
          name: z.string(),
          scopes: z.array(scope).readonly(),
          createdBy: z.string(),
          createdAt: z.int(),
          expiresAt: z.int().optional(),
          lastUsedAt: z.int().optional().describe('To within a minute'),
          revokedAt: z.int().optional(),
        }),
      )
      .readonly(),
  }),
  run: async ({ store }: StoreDeps) => ({ tokens: await store.read(readTokens, {}) }),
});

export const endToken = operation({
  name: 'tokens/revoke',
  method: 'POST',
  right: 'owner',
  summary: 'Revokes a token, and cuts its open requests',
  input: z.strictObject({ which: z.string().min(1).max(100).describe('Its id or name') }),
  answer: z.object({ id: z.string() }),
  refusals: ['not_found'],
  run: async ({ store, cutToken }: TokensDeps, { which }) => {
    const id = await store.write(revokeToken, { which, at: Date.now() });
    if (id === undefined)
      return new Refusal('not_found', `${stripText(which)} isn't a token. See: ${parleyCommand} tokens list`);
    cutToken(id);
    return { id };
  },
});
