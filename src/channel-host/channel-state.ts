import type { ChannelTrouble, TroubleCode } from '#contracts/channel.ts';

/** The state of one connection. */
export type ChannelState =
  | { readonly kind: 'off'; readonly reason: string }
  | { readonly kind: 'starting' }
  /** `reason`: why it is degraded; absent when it is well. */
  | { readonly kind: 'on'; readonly account: string; readonly reason?: string }
  | { readonly kind: 'standby'; readonly reason: string }
  | TroubledState;

export type TroubledState = {
  readonly kind: 'trouble';
  readonly problem: ChannelTrouble['kind'];
  readonly reason: string;
  readonly code?: TroubleCode | undefined;
  /** Since when the channel has been down without a break, ms since the epoch. */
  readonly since: number;
  /** When it is tried again, ms since the epoch; absent while the adapter itself keeps trying, every few seconds. */
  readonly nextTryAt?: number;
};

/** States reported by the host's parts; the start time is added where states are kept. */
export type NewState = Exclude<ChannelState, TroubledState> | Omit<TroubledState, 'since'>;

/** The state of a connection that receives; `storeFault` is why nothing of it can be stored. */
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
