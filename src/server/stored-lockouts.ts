import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import { findLockout, lockOut } from '../store/sign-ins/sign-ins.ts';
import type { Lockouts } from './attempt-limiter.ts';
import type { SignInStore } from './sign-ins.ts';
import { withinPatience } from './within-patience.ts';

const patienceMs = 1_000;

/** Keeps lockouts in the store. While it is unreachable, they apply to this process only. */
export function storedLockouts(deps: {
  readonly store: SignInStore;
  readonly clock: Clock;
  readonly log: Log;
}): Lockouts {
  const { store, clock, log } = deps;
  return {
    find: async (source) => {
      try {
        return await withinPatience(store.read(findLockout, { source, at: clock.now() }), patienceMs);
      } catch (error) {
        log.debug({ error }, 'lockout.not-read');
        return undefined;
      }
    },
    record: async (source, until) => {
      log.warn({ source, until }, 'lockout.begun');
      try {
        await withinPatience(store.write(lockOut, { source, until, at: clock.now() }), patienceMs);
      } catch (error) {
        log.warn({ error, source }, 'lockout.not-stored');
      }
    },
  };
}
