import { localTime } from '#channel-kit/time-text.ts';
import { ParleyError } from '#contracts/errors.ts';
import { type TokenScope, tokenScopes } from '#contracts/token-scope.ts';
import * as operations from '../operations/tokens.ts';
import { callOperation } from './call-operation.ts';
import type { CommandOutput } from './print.ts';

/** Lists the tokens of programs. */
export async function listTokens(): Promise<CommandOutput> {
  const { tokens } = await callOperation(operations.listTokens, {});
  const lines = tokens.map(({ id, name, scopes, lastUsedAt, expiresAt, revokedAt }) =>
    [
      ...[id, name, scopes.join(' ')],
      lastUsedAt === undefined ? 'never used' : `last used ${localTime(lastUsedAt)}`,
      ...stateOf(revokedAt, expiresAt),
    ].join('  '),
  );
  return { result: tokens, lines: lines.length === 0 ? ['There are no tokens.'] : lines };
}

function stateOf(revokedAt: number | undefined, expiresAt: number | undefined): readonly string[] {
  if (revokedAt !== undefined) return [`revoked ${localTime(revokedAt)}`];
  if (expiresAt === undefined) return [];
  return [`${expiresAt <= Date.now() ? 'expired' : 'expires'} ${localTime(expiresAt)}`];
}

/** Creates a token and prints its secret, once. `scopes`: separated by commas. */
export async function addToken(
  name: string,
  { scopes, days }: { readonly scopes: string; readonly days?: string },
): Promise<CommandOutput> {
  const wanted = scopes.split(/[\s,]+/).filter((word) => word !== '');
  const unknown = wanted.find((word) => !isScope(word));
  if (unknown !== undefined || wanted.length === 0)
    throw new ParleyError(
      'invalid_input',
      `“${unknown ?? ''}” isn't a scope. Name one or more of: ${tokenScopes.join(',')}`,
    );
  if (days !== undefined && !/^[1-9]\d{0,3}$/.test(days))
    throw new ParleyError('invalid_input', `“${days}” isn't a number of days.`);
  const created = await callOperation(operations.addToken, {
    ...{ name, scopes: wanted.filter(isScope) },
    ...(days !== undefined && { days: Number(days) }),
  });
  return { result: created, lines: [created.secret, 'Copy it now: Parley doesn’t show it again.'] };
}

function isScope(word: string): word is TokenScope {
  return tokenScopes.some((scope) => scope === word);
}

/** Revokes a token by its id or name. */
export async function revokeNamed(which: string): Promise<CommandOutput> {
  const result = await callOperation(operations.endToken, { which });
  return { result, lines: [`Revoked ${which}. It no longer opens anything.`] };
}
