import { createHash, timingSafeEqual } from 'node:crypto';
import type { Token } from '../store/sign-ins/tokens.ts';
import type { Attempt, AttemptLimiter } from './attempt-limiter.ts';
import type { SignIns } from './sign-ins.ts';
import type { TokenCheck } from './tokens.ts';

/** The caller of a request. There is one owner; a session is one signed-in browser, a token one program. */
export type Identity =
  | { readonly kind: 'bearer' }
  | { readonly kind: 'token'; readonly token: Token }
  | { readonly kind: 'session'; readonly id: string }
  | { readonly kind: 'nobody' }
  /** The token is wrong. */
  | { readonly kind: 'wrong' }
  /** The token is wrong, like too many others from the same source. */
  | { readonly kind: 'limited'; readonly retryAfterMs: number }
  /** There is a cookie or a token, but the store can't be asked about it. */
  | { readonly kind: 'unknown' };

export type RequestCredentials = {
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
  /** The source that a wrong token counts against, see `sourceOf`. */
  readonly source: string;
};

export interface IdentityCheck {
  identify(credentials: RequestCredentials): Promise<Identity>;
  /** Judges a token typed into the sign-in form. */
  tryToken(token: string, source: string): Promise<Attempt>;
}

export function createIdentityCheck(deps: {
  readonly token: string;
  readonly signIns: Pick<SignIns, 'find'>;
  readonly tokens: TokenCheck;
  readonly limiter: AttemptLimiter;
}): IdentityCheck {
  const tryToken = (token: string, source: string) =>
    deps.limiter.attempt(source, () => isSameSecret(token, deps.token));
  const identifyBearer = async (secret: string, source: string): Promise<Identity> => {
    const found = await deps.tokens.find(secret);
    if (found.kind === 'unknown') return found;
    const isRight = () => found.kind === 'token' || isSameSecret(secret, deps.token);
    const attempt = await deps.limiter.attempt(source, isRight);
    if (attempt.kind !== 'right') return attempt;
    return found.kind === 'token' ? found : { kind: 'bearer' };
  };
  return {
    tryToken,
    identify: async ({ authorization, cookie, source }) => {
      if (authorization !== undefined) return identifyBearer(bearerOf(authorization), source);
      if (cookie === undefined || cookie === '') return { kind: 'nobody' };
      const found = await deps.signIns.find(cookie);
      return found.kind === 'found' ? { kind: 'session', id: found.id } : found;
    },
  };
}

/** Returns the sign-in of the requesting browser; undefined for a caller with a token. */
export function signInIdOf(identity: Identity | undefined): string | undefined {
  return identity?.kind === 'session' ? identity.id : undefined;
}

function bearerOf(authorization: string): string {
  return /^Bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
}

/** Compares two secrets in a time that reveals nothing about where, or at what length, they differ. */
export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(value: string): Buffer {
  return createHash('sha256').update(value).digest();
}
