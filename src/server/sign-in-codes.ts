import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '#contracts/clock.ts';

/** The one-time codes of sign-in links. Each opens one session, once, within its lifetime. */
export interface SignInCodes {
  /** `by`: the sign-in that asks for the code. */
  issue(by?: string): string;
  /** Defined exactly once for a code that was issued and is not too old. */
  redeem(code: string): RedeemedCode | undefined;
}

export type RedeemedCode = {
  /** The sign-in that asked for it: the code is worth no more. Absent: the holder of the access token did. */
  readonly by: string | undefined;
  /** Makes the code good again: it opened nothing. */
  giveBack(): void;
};

const codeLifetimeMs = 15 * 60 * 1000;
const maxOpenCodes = 20;

export function createSignInCodes(clock: Clock): SignInCodes {
  // Keyed by hash: finding an entry then takes no time that depends on the code's characters.
  const open = new Map<string, { readonly by: string | undefined; readonly expiresAt: number }>();
  return {
    issue: (by) => {
      const code = randomBytes(24).toString('base64url');
      const oldest = open.keys().next();
      if (open.size >= maxOpenCodes && !oldest.done) open.delete(oldest.value);
      open.set(hashOf(code), { by, expiresAt: clock.now() + codeLifetimeMs });
      return code;
    },
    redeem: (code) => {
      const hash = hashOf(code);
      const found = open.get(hash);
      open.delete(hash);
      if (found === undefined || found.expiresAt <= clock.now()) return undefined;
      return { by: found.by, giveBack: () => void open.set(hash, found) };
    },
  };
}

function hashOf(code: string): string {
  return createHash('sha256').update(code).digest('base64url');
}
