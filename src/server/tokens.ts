/** Recognizes the tokens of programs. Their rows are read at each request, so a revocation applies at once everywhere. */
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import { hashToken, tokenPrefix } from '../operations/tokens.ts';
import type { Store } from '../store/base/command.ts';
import { findToken, type Token, touchToken } from '../store/sign-ins/tokens.ts';
import { withinPatience } from './readiness.ts';

export interface TokenCheck {
  /** Finds the valid token with this secret. The time it takes reveals nothing about other secrets: it looks for a hash. */
  find(secret: string): Promise<FoundToken>;
}

export type FoundToken =
  | { readonly kind: 'token'; readonly token: Token }
  | { readonly kind: 'none' }
  /** The store can't be read. */
  | { readonly kind: 'unknown' };

/** How stale "last used" may be, ms. */
const touchMs = 60_000;
const patienceMs = 2_000;
const form = new RegExp(`^${tokenPrefix}[\\w-]{43}$`);

export function createTokenCheck({
  store,
  clock,
  log,
}: {
  readonly store: Pick<Store, 'read' | 'writeAlong'>;
  readonly clock: Clock;
  readonly log: Log;
}): TokenCheck {
  const touch = ({ id, lastUsedAt = 0 }: Token) => {
    const at = clock.now();
    if (at - lastUsedAt >= touchMs) store.writeAlong(touchToken, { id, at });
  };
  return {
    find: async (secret) => {
      if (!form.test(secret)) return { kind: 'none' };
      try {
        const reading = store.read(findToken, { secretHash: hashToken(secret), at: clock.now() });
        const token = await withinPatience(reading, patienceMs);
        if (token === undefined) return { kind: 'none' };
        touch(token);
        return { kind: 'token', token };
      } catch (error) {
        log.debug({ error }, 'token.not-read');
        return { kind: 'unknown' };
      }
    },
  };
}
