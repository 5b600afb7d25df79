import type { HostedChannel } from '#contracts/channel.ts';
import type { Found } from '#contracts/channel-abilities.ts';
import type { Clock } from '#contracts/clock.ts';
import { hasCode } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { Outbound, SendResult } from '#contracts/outbound.ts';
import type { Probe } from '#contracts/probe.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Store } from '../store/command.ts';
import {
  claimDelivery,
  type Delivery,
  type DeliveryPolicy,
  type Settling,
  settleDelivery,
} from '../store/delivery/deliver.ts';
import type { Settled } from '../store/delivery/settle-part.ts';

export type DelivererDeps = {
  readonly store: Store;
  readonly holder: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  /** The connection that serves a route in this process; undefined when another process has to. */
  adapterFor(route: Pick<ReplyRoute, 'channel' | 'account'>): HostedChannel | undefined;
  /** Which channel and account a conversation key belongs to. */
  readonly settings: {
    readonly tries: number;
    readonly minBackoffMs: number;
    readonly maxBackoffMs: number;
    readonly resendUnknown: boolean;
  };
  /** Called after each change of a part, for pages and clients. */
  onSettled(settled: { readonly part: Outbound; readonly laneKey: string | undefined }): void;
};

export interface Deliverer {
  /** Delivers what waits in the conversation. Never waits, never throws; a second call while one works is noted. */
  deliver(conversationKey: string): void;
  /** Stops after the parts in hand have ended. */
  stop(): Promise<void>;
}

const leaseMs = 60_000;
/** A call that takes longer than this is given up as unknown. */
const sendTimeoutMs = 30_000;

/** Step 10: one delivery at a time per conversation, in order; an ambiguous send is never repeated blindly. */
export function createDeliverer(deps: DelivererDeps): Deliverer {
  const working = new Map<string, { isAsked: boolean; readonly done: Promise<void> }>();
  const timers = new Map<string, NodeJS.Timeout>();
  const stopping = new AbortController();

  const deliver = (conversationKey: string): void => {
    if (stopping.signal.aborted) return;
    const current = working.get(conversationKey);
    if (current) {
      current.isAsked = true;
      return;
    }
    const entry = { isAsked: false, done: drain(conversationKey) };
    working.set(conversationKey, entry);
    void entry.done.then(() => {
      working.delete(conversationKey);
      if (entry.isAsked) deliver(conversationKey);
    });
  };

  const drain = async (conversationKey: string): Promise<void> => {
    const again = await deliverWaiting(deps, { conversationKey, stopping: stopping.signal }).catch(
      (error: unknown) => {
        const isStale = hasCode(error, 'stale_epoch');
        deps.log.warn({ conversationKey, error }, isStale ? 'delivery.lease-lost' : 'delivery.interrupted');
        return undefined;
      },
    );
    if (again !== undefined) arm(conversationKey, again);
  };

  const arm = (conversationKey: string, delayMs: number) => {
    if (stopping.signal.aborted) return;
    clearTimeout(timers.get(conversationKey));
    const timer = setTimeout(() => {
      timers.delete(conversationKey);
      deliver(conversationKey);
    }, delayMs);
    timers.set(conversationKey, timer);
  };

  return {
    deliver,
    stop: async () => {
      stopping.abort();
      for (const timer of timers.values()) clearTimeout(timer);
      await Promise.all([...working.values()].map((entry) => entry.done));
    },
  };
}

type Draining = { readonly conversationKey: string; readonly stopping: AbortSignal };

/** Sends part after part; returns after how many ms to look again, if there is a reason to. */
async function deliverWaiting(
  deps: DelivererDeps,
  { conversationKey, stopping }: Draining,
): Promise<number | undefined> {
  const { store, probe } = deps;
  const channel = deps.adapterFor(placeOf(conversationKey));
  if (!channel) return undefined;
  const policy: DeliveryPolicy = {
    holder: deps.holder,
    leaseMs,
    repeatSafeMs: channel.definition.capabilities.repeatSafeMs,
    canLookUp: channel.adapter.lookup !== undefined,
    resendUnknown: deps.settings.resendUnknown,
  };
  let delivery: Delivery = await store.write(claimDelivery, { ...policy, conversationKey });
  while (delivery.kind === 'part') {
    const { part, epoch, laneKey, mayStandSince } = delivery;
    probe.reach('outbox-claimed');
    const settled = await carryOut(deps, channel, delivery);
    const settling = { ...policy, conversationKey, epoch, partKey: part.key, mayStandSince, result: settled };
    delivery = await settle(deps, { ...settling, claimsNext: !stopping.aborted }, stopping);
    probe.reach('marked');
    if (settled.kind !== 'sent') deps.log.warn({ part: part.key, result: settled }, 'delivery.trouble');
    deps.onSettled({ part, laneKey });
  }
  return delivery.kind === 'empty' ? undefined : delivery.delayMs;
}

type ClaimedPart = Extract<Delivery, { kind: 'part' }>;

async function carryOut(
  { probe, log, settings }: DelivererDeps,
  channel: HostedChannel,
  { part, tries, step, mayStandSince }: ClaimedPart,
): Promise<Settled> {
  if (step === 'look-up') {
    return { kind: 'looked-up', found: await lookUp(channel, { part, since: mayStandSince ?? 0, log }) };
  }
  probe.reach('sending');
  const result = await send(channel, part, log);
  probe.reach('sent-not-marked');
  return settledOf(result, tries, settings);
}

const settleAgainMs = 500;

/**
 * What the platform said is lost with this process, and the part then counts as unknown: so a store
 * that is away is asked again for as long as the lease surely holds.
 */
async function settle(
  { store, clock }: DelivererDeps,
  settling: Settling,
  stopping: AbortSignal,
): Promise<Delivery> {
  const until = clock.now() + leaseMs - sendTimeoutMs;
  for (;;) {
    try {
      return await store.write(settleDelivery, settling);
    } catch (error) {
      const isAway = hasCode(error, 'store_unavailable') || hasCode(error, 'store_full');
      if (!isAway || stopping.aborted || clock.now() >= until) throw error;
      await clock.wait(settleAgainMs, stopping);
    }
  }
}

async function send({ adapter }: HostedChannel, part: Outbound, log: Log): Promise<SendResult> {
  try {
    return await adapter.send(part, AbortSignal.timeout(sendTimeoutMs));
  } catch (error) {
    // A fault in the adapter itself: nobody can say whether the platform has it.
    log.error({ part: part.key, error }, 'delivery.fault');
    return { kind: 'unknown', reason: error instanceof Error ? error.message : String(error) };
  }
}

async function lookUp(
  { adapter }: HostedChannel,
  { part, since, log }: { readonly part: Outbound; readonly since: number; readonly log: Log },
): Promise<Found> {
  try {
    const found = await adapter.lookup?.find(part, since, AbortSignal.timeout(sendTimeoutMs));
    return found ?? { kind: 'unknown', reason: 'interrupted while sending' };
  } catch (error) {
    log.error({ part: part.key, error }, 'delivery.lookup-fault');
    return { kind: 'unknown', reason: error instanceof Error ? error.message : String(error) };
  }
}

type Backoff = { readonly tries: number; readonly minBackoffMs: number; readonly maxBackoffMs: number };

/** A refused connection costs nothing, and people wait for what is due when the platform is back. */
const outagePauseMs = 3_000;

/**
 * A wait that the platform names is honoured as it is; our own grow from 0.5 s to 30 s and are counted,
 * except while the platform cannot be reached at all.
 */
export function settledOf(
  result: SendResult,
  tries: number,
  { tries: most, minBackoffMs, maxBackoffMs }: Backoff,
): Settled {
  if (result.kind !== 'retry' || result.afterMs > 0) return result;
  if (result.isOutage) return { ...result, afterMs: outagePauseMs };
  if (tries > most) return { kind: 'exhausted', reason: result.reason };
  const step = Math.min(1, (tries - 1) / Math.max(1, most - 1));
  const factor = (maxBackoffMs / minBackoffMs) ** step;
  return { ...result, afterMs: Math.round(minBackoffMs * factor) };
}

function placeOf(conversationKey: string): Pick<ReplyRoute, 'channel' | 'account'> {
  const [channel = '', account = ''] = conversationKey.split('/').map(decodeURIComponent);
  // The key was made from such a route.
  return { channel, account } as unknown as Pick<ReplyRoute, 'channel' | 'account'>;
}
