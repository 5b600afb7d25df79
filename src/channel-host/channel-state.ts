import type { ChannelTrouble, TroubleCode } from '#contracts/channel.ts';

/** The state of one connection. */
export type ChannelState =
  | { readonly kind: 'off'; readonly reason: string }
  | { readonly kind: 'starting' }
  /** `reason`: why it is degraded; absent when it isn't. */
  | { readonly kind: 'on'; readonly account: string; readonly reason?: string }
  | { readonly kind: 'standby'; readonly reason: string }
  | TroubledState;

export type TroubledState = {
  readonly kind: 'trouble';
  readonly problem: ChannelTrouble['kind'];
  readonly reason: string;
  readonly code?: TroubleCode | undefined;
  /** Start of the uninterrupted problem, ms since the epoch. */
  readonly since: number;
  /** Time of the next retry, ms since the epoch; absent while the adapter itself retries every few seconds. */
  readonly nextTryAt?: number;
};

/** States reported by the host's parts; the start time is added where states are kept. */
export type NewState = Exclude<ChannelState, TroubledState> | Omit<TroubledState, 'since'>;

/** Returns the state of a connection that receives; `storeFault` says why its events can't be stored. */
export function stateOf(
  account: string,
  latest: ChannelTrouble | undefined,
  storeFault: string | undefined,
): NewState {
  if (storeFault !== undefined)
    return { kind: 'trouble', problem: 'unreachable', code: 'not-stored', reason: storeFault };
  if (latest === undefined || latest.isDegraded)
    return { kind: 'on', account, ...(latest && { reason: latest.detail }) };
  const { kind: problem, detail: reason, code, nextTryAt } = latest;
  return { kind: 'trouble', problem, reason, code, ...(nextTryAt !== undefined && { nextTryAt }) };
}
