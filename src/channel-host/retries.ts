import { backoffMs } from '#channel-kit/backoff.ts';
import { retryAfterMs } from '#channel-kit/remote-number.ts';
import { slowRetryMs } from '#channel-kit/slow-retry.ts';
import type { ChannelTrouble } from '#contracts/channel.ts';
import { hasCode, ParleyError } from '#contracts/errors.ts';

/** Thrown to end a connection that its adapter has given up on. */
export class RefusedByNetwork extends Error {
  readonly problem: ChannelTrouble;

  constructor(problem: ChannelTrouble) {
    super(problem.detail);
    this.problem = problem;
  }
}

/** Decides when a connection is retried: soon after an outage, slowly after a refusal, but always eventually. */
export interface Retries {
  /** Counts a failed attempt. `waitMs`: time until the next one. */
  after(error: unknown): { readonly problem: ChannelTrouble; readonly waitMs: number };
  /** Returns the wait, ms, after a connection that ended normally. */
  afterRest(): number;
  /** Resets the counts, because the network has answered. */
  proven(): void;
  /** Returns the last refusal, until the connection is known to work. */
  refusal(): ChannelTrouble | undefined;
}

const firstRetryMs = 500;
const longestRetryMs = 30_000;

export function createRetries({ random }: { readonly random?: () => number }): Retries {
  let failures = 0;
  let refusals = 0;
  let refusal: ChannelTrouble | undefined;
  return {
    after: (error) => {
      const refused = refusalIn(error);
      if (refused) {
        refusal = refused;
        refusals += 1;
        return { problem: refused, waitMs: slowRetryMs(refusals, random) };
      }
      failures += 1;
      const ownMs = backoffMs(failures + 1, { firstMs: firstRetryMs, longestMs: longestRetryMs });
      const detail = error instanceof Error ? error.message : String(error);
      return {
        problem: { kind: 'unreachable', code: 'no-answer', detail },
        waitMs: Math.max(ownMs, askedMs(error)),
      };
    },
    afterRest: () => {
      failures = 0;
      return firstRetryMs;
    },
    proven: () => {
      failures = 0;
      refusals = 0;
      refusal = undefined;
    },
    refusal: () => refusal,
  };
}

/** Wrong tokens and settings don't fix themselves soon, but a refusal may be a mistake, so it is retried slowly. */
function refusalIn(error: unknown): ChannelTrouble | undefined {
  if (error instanceof RefusedByNetwork) return error.problem;
  const detail = error instanceof Error ? error.message : '';
  if (hasCode(error, 'channel_unauthorised'))
    return { kind: 'unauthorised', code: 'bad-credentials', detail };
  return hasCode(error, 'config_invalid') ? { kind: 'unreachable', code: 'settings', detail } : undefined;
}

/** Returns the wait that the network asked for, within reason. */
function askedMs(error: unknown): number {
  const advice = error instanceof ParleyError ? error.retry : undefined;
  return advice?.kind === 'later' && advice.afterMs !== undefined ? retryAfterMs(advice.afterMs) : 0;
}
