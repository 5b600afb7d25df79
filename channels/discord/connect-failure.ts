/** Reasons why a gateway connection failed, each with its pause. Pure. */

import { GatewayCloseCodes } from 'discord.js';
import { backoffMs, slowRetryMs } from '#channel-kit/backoff.ts';
import { clampRemote, retryAfterMs } from '#channel-kit/remote-number.ts';
import type { ChannelTrouble } from '#contracts/channel.ts';
import { readRefusal, reasonOf } from './failures.ts';
import type { SocketEnd } from './socket.ts';

export type ConnectFailure = {
  /** `refused`: the result stays the same until somebody fixes something, here or at Discord. */
  readonly kind: 'unreachable' | 'refused' | 'unauthorised' | 'intents-refused';
  readonly detail: string;
  /** The wait that Discord asks for, clamped, ms. */
  readonly afterMs?: number;
};

/** For the owner. */
export const tokenRefused =
  'Discord refused the bot token; reset it on the Bot page of the developer portal and set DISCORD_BOT_TOKEN';

/** After these codes, Discord wants no further attempt with the same settings. */
const refusedCodes = new Set<number>([
  GatewayCloseCodes.InvalidShard,
  GatewayCloseCodes.ShardingRequired,
  GatewayCloseCodes.InvalidAPIVersion,
  GatewayCloseCodes.InvalidIntents,
]);

const pauses = { firstMs: 500, longestMs: 60_000 };
const allSpentRange = { min: 60_000, max: 15 * 60_000, fallback: 60_000 } as const;

export function failureOfEnd({ code, reason }: SocketEnd): ConnectFailure {
  if (code === GatewayCloseCodes.AuthenticationFailed) return { kind: 'unauthorised', detail: tokenRefused };
  if (code === GatewayCloseCodes.DisallowedIntents)
    return { kind: 'intents-refused', detail: 'Discord refuses the intents that the bot asks for (4014)' };
  if (code !== undefined && refusedCodes.has(code))
    return { kind: 'refused', detail: `Discord’s gateway refuses the connection (${code})` };
  return { kind: 'unreachable', detail: reason };
}

/** Returns the failure for a failed request for the gateway's address. */
export function failureOfFault(error: unknown): ConnectFailure {
  const refusal = readRefusal(error);
  const detail = `Discord’s gateway could not be reached: ${reasonOf(error)}`;
  if (refusal?.status === 401) return { kind: 'unauthorised', detail: tokenRefused };
  if (refusal?.status === 403 || refusal?.status === 404) return { kind: 'refused', detail };
  const asked = refusal?.retryAfterMs;
  return { kind: 'unreachable', detail, ...(asked === undefined ? {} : { afterMs: retryAfterMs(asked) }) };
}

/** Returns the failure when Discord allows no further session today; `resetAfter`: as it came. */
export function allSpent(resetAfter: unknown): ConnectFailure {
  return {
    kind: 'unreachable',
    detail: 'Discord allows the bot no further session for now',
    afterMs: clampRemote(resetAfter, allSpentRange),
  };
}

/** Failures in a row, counted separately: an outage doesn't lengthen the pause after the first refusal. */
export type Failures = { readonly refusals: number; readonly outages: number };

export const noFailures: Failures = { refusals: 0, outages: 0 };

export function countFailure({ refusals, outages }: Failures, failure: ConnectFailure): Failures {
  return isRefusal(failure) ? { refusals: refusals + 1, outages } : { refusals, outages: outages + 1 };
}

/** Returns how long to wait before the next attempt, ms. The failures include this one. */
export function pauseAfter(failure: ConnectFailure, { refusals, outages }: Failures): number {
  if (isRefusal(failure)) return slowRetryMs(refusals);
  return Math.max(failure.afterMs ?? 0, backoffMs(outages, pauses));
}

function isRefusal({ kind }: ConnectFailure): boolean {
  return kind === 'refused' || kind === 'unauthorised';
}

export function troubleOf({ kind, detail }: ConnectFailure): ChannelTrouble {
  if (kind === 'unauthorised') return { kind, code: 'bad-credentials', detail };
  return { kind: 'unreachable', code: kind === 'unreachable' ? 'no-answer' : 'refused', detail };
}
