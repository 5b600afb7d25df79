import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '#contracts/clock.ts';

/** The one-time codes of sign-in links. Each opens one session, once, within its lifetime. */
export interface SignInCodes {
  issue(): string;
  /** True exactly once for a code that was issued and is not too old. */
  redeem(code: string): boolean;
  /** Makes a redeemed code good again: it opened nothing. */
  giveBack(code: string): void;
}

const codeLifetimeMs = 15 * 60 * 1000;
const maxOpenCodes = 20;

export function createSignInCodes(clock: Clock): SignInCodes {
  // Keyed by hash: finding an entry then takes no time that depends on the code's characters.
  const expiries = new Map<string, number>();
  return {
    issue: () => {
      const code = randomBytes(24).toString('base64url');
      const oldest = expiries.keys().next();
      if (expiries.size >= maxOpenCodes && !oldest.done) expiries.delete(oldest.value);
      expiries.set(hashOf(code), clock.now() + codeLifetimeMs);
      return code;
    },
    redeem: (code) => {
      const expiry = expiries.get(hashOf(code));
      expiries.delete(hashOf(code));
      return expiry !== undefined && expiry > clock.now();
    },
    giveBack: (code) => void expiries.set(hashOf(code), clock.now() + codeLifetimeMs),
  };
}

function hashOf(code: string): string {
  return createHash('sha256').update(code).digest('base64url');
}
