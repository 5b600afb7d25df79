import type { CallPace } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';

/** The part of the allowance that may be used at once after a pause; the rest is the steady rate, so both fit into it. */
const burstShare = 0.2;
/** How long nothing is shown after the network has refused a call, ms. */
const quietMs = 5_000;
/** How long deliveries keep to the allowance after that, ms. Until then they don't: many bots are allowed more. */
const pacedMs = 60_000;

/** Creates the pace of one account, which has used nothing yet. `callsPerSecond`: what the network allows it. */
export function createCallPace(callsPerSecond: number, clock: Clock): CallPace {
  const burst = Math.max(1, callsPerSecond * burstShare);
  const perMs = (callsPerSecond - burst) / 1_000;
  let at = clock.now();
  /** Calls that may be made now; negative while deliveries wait for theirs. */
  let left = burst;
  let [quietUntil, pacedUntil] = [0, 0];
  const count = () => {
    const now = clock.now();
    left = Math.min(burst, left + Math.max(0, now - at) * perMs);
    at = now;
    return now;
  };
  return {
    async turn(limitMs, signal) {
      if (count() >= pacedUntil) {
        left = Math.max(-burst, left - 1);
        return true;
      }
      const waitMs = (1 - left) / perMs;
      if (waitMs > limitMs) return false;
      left -= 1;
      if (waitMs > 0) await clock.wait(waitMs, signal);
      return true;
    },
    mayShow() {
      // Half of what may be used at once stays with the deliveries.
      if (count() < quietUntil || left < burst / 2 + 1) return false;
      left -= 1;
      return true;
    },
    refused() {
      quietUntil = clock.now() + quietMs;
      pacedUntil = clock.now() + pacedMs;
    },
  };
}
