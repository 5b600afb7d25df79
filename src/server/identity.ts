import type { Attempt, AttemptLimiter } from './attempt-limiter.ts';
import { isSameSecret } from './secret-comparison.ts';
import type { SessionSeal } from './session-seal.ts';

/** Who asks. There is one owner; a session is one signed-in browser. */
export type Identity =
  | { readonly kind: 'bearer' }
  | { readonly kind: 'session'; readonly id: string }
  | { readonly kind: 'nobody' }
  /** Too many wrong tokens came from there; this one was not looked at. */
  | { readonly kind: 'limited' };

export type Credentials = {
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
  /** The peer's address, never a forwarded one. */
  readonly source: string;
};

export interface IdentityCheck {
  identify(credentials: Credentials): Identity;
  /** Judges a token typed into the sign-in form. */
  tryToken(token: string, source: string): Attempt;
}

export function createIdentityCheck(deps: {
  readonly token: string;
  readonly seal: SessionSeal;
  readonly limiter: AttemptLimiter;
}): IdentityCheck {
  const tryToken = (token: string, source: string) =>
    deps.limiter.attempt(source, () => isSameSecret(token, deps.token));
  return {
    tryToken,
    identify: ({ authorization, cookie, source }) => {
      if (authorization !== undefined) return identifyBearer(tryToken(bearerOf(authorization), source));
      const id = cookie === undefined ? undefined : deps.seal.read(cookie);
      return id === undefined ? { kind: 'nobody' } : { kind: 'session', id };
    },
  };
}

function bearerOf(authorization: string): string {
  return /^Bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
}

function identifyBearer(attempt: Attempt): Identity {
  switch (attempt.kind) {
    case 'right':
      return { kind: 'bearer' };
    case 'wrong':
      return { kind: 'nobody' };
    case 'limited':
      return { kind: 'limited' };
    default:
      return attempt satisfies never;
  }
}
