import type { Attempt, AttemptLimiter } from './attempt-limiter.ts';
import { isSameSecret } from './secret-comparison.ts';
import type { SignIns } from './sign-ins.ts';

/** Who asks. There is one owner; a session is one signed-in browser. */
export type Identity =
  | { readonly kind: 'bearer' }
  | { readonly kind: 'session'; readonly id: string }
  | { readonly kind: 'nobody' }
  /** A token came, and it is wrong. */
  | { readonly kind: 'wrong' }
  /** It is wrong, as too many others from there were. */
  | { readonly kind: 'limited'; readonly retryAfterMs: number }
  /** A cookie came, and the store can't be asked about it. */
  | { readonly kind: 'unknown' };

export type RequestCredentials = {
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
  /** Whom a wrong token counts against, see `sourceOf`. */
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
  readonly limiter: AttemptLimiter;
}): IdentityCheck {
  const tryToken = (token: string, source: string) =>
    deps.limiter.attempt(source, () => isSameSecret(token, deps.token));
  return {
    tryToken,
    identify: async ({ authorization, cookie, source }) => {
      if (authorization !== undefined) {
        const attempt = await tryToken(bearerOf(authorization), source);
        return attempt.kind === 'right' ? { kind: 'bearer' } : attempt;
      }
      if (cookie === undefined || cookie === '') return { kind: 'nobody' };
      const found = await deps.signIns.find(cookie);
      return found.kind === 'found' ? { kind: 'session', id: found.id } : found;
    },
  };
}

/** The sign-in of the browser that asks; undefined for a caller with the token. */
export function signInIdOf(identity: Identity | undefined): string | undefined {
  return identity?.kind === 'session' ? identity.id : undefined;
}

function bearerOf(authorization: string): string {
  return /^Bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
}
