import { resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fitChars } from '#channel-kit/clean-text.ts';
import { askedWaitMs, longestWaitMs, retryAfterMs } from '#channel-kit/remote-number.ts';
import { ambiguous } from '#channel-kit/send-result.ts';
import { withLimit } from '#channel-kit/with-limit.ts';
import type { HostedChannel } from '#contracts/channel.ts';
import type { Found } from '#contracts/channel-abilities.ts';
import type { Clock } from '#contracts/clock.ts';
import { hasCode, isStoreAway } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { Outbound, SendResult } from '#contracts/outbound.ts';
import type { Probe } from '#contracts/probe.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { withCommands } from '../replies/with-commands.ts';
import type { Store } from '../store/base/command.ts';
import { conversationKeyOf } from '../store/base/conversation-key.ts';
import { newRowId } from '../store/base/row-id.ts';
import {
  type ClaimedDelivery,
  claimDelivery,
  type Delivery,
  type DeliveryPolicy,
  type RecordDeliveryInput,
  recordDelivery,
} from '../store/delivery/claim-delivery.ts';
import type { SendOutcome } from '../store/delivery/record-send.ts';
import type { SendJournal } from './send-journal.ts';
import { UnansweredClaims } from './unanswered-claims.ts';

export type DelivererDeps = {
  readonly store: Store;
  readonly holder: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  readonly journal: Pick<SendJournal, 'begin' | 'end'>;
  /** Holds the files that parts name. */
  readonly mediaDir: string;
  /** The connection that serves a route in this process; undefined when another process has to. */
  adapterFor(route: Pick<ReplyRoute, 'channel' | 'account'>): HostedChannel | undefined;
  readonly settings: {
    readonly retries: number;
    readonly minBackoffMs: number;
    readonly maxBackoffMs: number;
    /** A call that takes longer than this is given up as unknown. */
    readonly sendTimeoutMs: number;
    readonly resendUnknown: boolean;
  };
  /** Called after each change of a part, for pages and clients. */
  onSettled(settled: SettledPart): void;
};

export type SettledPart = {
  readonly part: Outbound;
  readonly laneKey: string | undefined;
  readonly result: SendOutcome['kind'];
  /** From the commit that stored it to the platform's answer, ms. */
  readonly ageMs: number;
};

/** Delivers stored parts, conversation by conversation. */
export interface Deliverer {
  /**
   * Delivers what waits in the conversation. Never waits, never throws; a second call while one works is
   * noted. False when another process has to.
   */
  deliver(conversationKey: string): boolean;
  /**
   * Gives the commit the terms on which it may claim what it adds to this route; undefined when it is not served
   * here. A claim that was committed although its answer was lost is delivered soon.
   */
  claimAlong<T>(route: ReplyRoute, commit: (sender: DeliveryPolicy | undefined) => Promise<T>): Promise<T>;
  /**
   * Goes on from what such a commit has claimed. Resolves when its call had time to leave, so that what
   * the caller does next does not hold it up; never rejects.
   */
  continueFrom(claimed: ClaimedDelivery): Promise<void>;
  /** Stops after the parts in hand have ended, and those that are handed over meanwhile. */
  stop(): Promise<void>;
}

/** Lease of a delivery: covers the longest call and the commit after it. */
function leaseOf({ sendTimeoutMs }: DelivererDeps['settings']): number {
  return 2 * sendTimeoutMs;
}

/** Step 10: one delivery at a time per conversation, in order; an ambiguous send is never repeated blindly. */
export function createDeliverer(deps: DelivererDeps): Deliverer {
  const [working, asked] = [new Map<string, DrainWork>(), new Set<string>()];
  const stopping = new AbortController();
  const unanswered = new UnansweredClaims();

  const work = (conversationKey: string, claimed?: Delivery): void => {
    const current = working.get(conversationKey);
    if (current) {
      asked.add(conversationKey);
      current.claimed ??= claimed;
      return;
    }
    const entry: DrainWork = { claimed: undefined, done: drain(conversationKey, claimed) };
    working.set(conversationKey, entry);
    void entry.done.then(() => {
      working.delete(conversationKey);
      if (entry.claimed) work(conversationKey, entry.claimed);
      else if (asked.delete(conversationKey)) deliver(conversationKey);
    });
  };

  const deliver = (conversationKey: string): boolean => {
    const isServed = !stopping.signal.aborted && deps.adapterFor(placeOf(conversationKey)) !== undefined;
    if (isServed) work(conversationKey);
    return isServed;
  };

  const drain = async (conversationKey: string, claimed: Delivery | undefined): Promise<void> => {
    const draining = { conversationKey, claimed, unanswered, asked, stopping: stopping.signal };
    const level = unanswered.of(conversationKey).length > 0 ? 'debug' : 'warn';
    const again = await deliverWaiting(deps, draining).catch((error: unknown) => {
      const isStale = hasCode(error, 'stale_epoch');
      deps.log[level]({ conversationKey, error }, isStale ? 'delivery.lease-lost' : 'delivery.interrupted');
      return undefined;
    });
    const delayMs = unanswered.of(conversationKey).length > 0 ? claimAgainMs : again;
    if (delayMs !== undefined && !stopping.signal.aborted) alarms.set(conversationKey, delayMs);
  };
  const alarms = createAlarms(deliver);

  return {
    deliver,
    claimAlong: (route, commit) => {
      const answer = commitAlong(deps, { route, unanswered, working }, commit);
      answer.catch(() => deliver(conversationKeyOf(route)));
      return answer;
    },
    // A claimed part is completed even while this process stops.
    continueFrom: async ({ conversationKey, delivery }) => {
      work(conversationKey, delivery);
      // Its call is written to the socket at the end of this turn of the event loop.
      await nextTurn();
    },
    stop: async () => {
      stopping.abort();
      alarms.clear();
      while (working.size > 0) await Promise.all([...working.values()].map((entry) => entry.done));
    },
  };
}

/** One for each key: a new one replaces it. */
function createAlarms(ring: (key: string) => void) {
  const timers = new Map<string, NodeJS.Timeout>();
  return {
    set: (key: string, delayMs: number) => {
      clearTimeout(timers.get(key));
      const onTime = () => {
        timers.delete(key);
        ring(key);
      };
      // A timer beyond 2^31 ms fires at once: a lease that was taken by a clock that was wrong may last for years.
      timers.set(key, setTimeout(onTime, Math.min(delayMs, longestWaitMs)));
    },
    clear: () => {
      for (const timer of timers.values()) clearTimeout(timer);
    },
  };
}

type DrainWork = { claimed: Delivery | undefined; readonly done: Promise<void> };

type DrainInput = {
  readonly conversationKey: string;
  readonly claimed: Delivery | undefined;
  readonly unanswered: UnansweredClaims;
  /** Conversations at work into which something was put that no step has looked for yet. */
  readonly asked: Set<string>;
  readonly stopping: AbortSignal;
};

/** A step that looks for what comes next in the conversation finds all that was put there before it. */
async function lookAhead<T>({ conversationKey, asked }: DrainInput, step: () => Promise<T>): Promise<T> {
  const wasAsked = asked.delete(conversationKey);
  try {
    return await step();
  } catch (error) {
    if (wasAsked) asked.add(conversationKey);
    throw error;
  }
}

/** Names a claim of its own: one of which nothing was begun must not be taken for another. */
function policyOf({ holder, settings }: DelivererDeps, { definition, adapter }: HostedChannel) {
  const { repeatSafeMs } = definition.capabilities;
  const canLookUp = adapter.lookup !== undefined;
  const leaseMs = leaseOf(settings);
  const { resendUnknown } = settings;
  return { holder, claimId: newRowId(), leaseMs, repeatSafeMs, canLookUp, resendUnknown };
}

type Along = {
  readonly route: ReplyRoute;
  readonly unanswered: UnansweredClaims;
  readonly working: ReadonlyMap<string, DrainWork>;
};

async function commitAlong<T>(
  deps: DelivererDeps,
  { route, unanswered, working }: Along,
  commit: (sender: DeliveryPolicy | undefined) => Promise<T>,
): Promise<T> {
  const channel = deps.adapterFor(route);
  const conversationKey = conversationKeyOf(route);
  // A lease may be over while its call is not: no process takes its own part for one that was cut off.
  if (!channel || working.has(conversationKey)) return commit(undefined);
  const policy = policyOf(deps, channel);
  const named = { conversationKey, claimId: policy.claimId };
  return unanswered.watch(named, () => commit(policy));
}

/** After a claim without an answer. */
const claimAgainMs = 1_000;

/** Claims the conversation, be it that this process has done so and was not told. */
async function claim(deps: DelivererDeps, channel: HostedChannel, draining: DrainInput): Promise<Delivery> {
  const { conversationKey, unanswered } = draining;
  const claims = unanswered.of(conversationKey);
  const policy = policyOf(deps, channel);
  const named = { ...policy, claimId: claims.at(-1) ?? policy.claimId, conversationKey };
  const claiming = { ...named, unanswered: claims };
  const delivery = await lookAhead(draining, () =>
    unanswered.watch(named, () => deps.store.write(claimDelivery, claiming)),
  );
  unanswered.forget(conversationKey, claims);
  return delivery;
}

/** Sends part after part; returns after how many ms to look again, if there is a reason to. */
async function deliverWaiting(deps: DelivererDeps, draining: DrainInput): Promise<number | undefined> {
  const { conversationKey, claimed, unanswered, stopping } = draining;
  const { clock, probe, journal } = deps;
  const channel = deps.adapterFor(placeOf(conversationKey));
  if (!channel) return undefined;
  let delivery = claimed ?? (await claim(deps, channel, draining));
  while (delivery.kind === 'part') {
    const { part, epoch, laneKey, attempts, mayStandSince } = delivery;
    probe.reach('outbox-claimed');
    journal.begin(part.key);
    const calledAt = clock.now();
    const settled = await callPlatform(deps, channel, delivery);
    const ageMs = delivery.ageMs + clock.now() - calledAt;
    const policy = { ...policyOf(deps, channel), conversationKey };
    const settling = { ...policy, epoch, partKey: part.key, attempts, mayStandSince, result: settled };
    delivery = await lookAhead(draining, () =>
      unanswered.watch(policy, () => settle(deps, { ...settling, claimsNext: !stopping.aborted }, stopping)),
    );
    journal.end(part.key);
    probe.reach('marked');
    if (settled.kind !== 'sent') deps.log.warn({ part: part.key, result: settled }, 'delivery.not-confirmed');
    deps.onSettled({ part, laneKey, result: settled.kind, ageMs });
  }
  return delivery.kind === 'empty' ? undefined : delivery.delayMs;
}

type ClaimedPart = Extract<Delivery, { kind: 'part' }>;

async function callPlatform(
  { probe, log, settings, mediaDir }: DelivererDeps,
  channel: HostedChannel,
  { part: claimed, attempts, step, mayStandSince }: ClaimedPart,
): Promise<SendOutcome> {
  const shown = channel.definition.capabilities.canPress ? claimed : withCommands(claimed);
  const part = withFile(shown, mediaDir);
  if (step === 'look-up') {
    const { sendTimeoutMs } = settings;
    const found = await lookUp(channel, { part, since: mayStandSince ?? 0, log, sendTimeoutMs });
    return { kind: 'looked-up', found: briefly(found) };
  }
  probe.reach('sending');
  const result = await send(channel, part, { log, ...settings });
  probe.reach('sent-not-marked');
  return applyBackoff(result, attempts, settings);
}

function withFile(part: Outbound, mediaDir: string): Outbound {
  const { content } = part;
  return content.kind === 'media'
    ? { ...part, content: { ...content, path: resolve(mediaDir, content.path) } }
    : part;
}

const settleAgainMs = 500;

/**
 * Only this process knows the platform's answer; without it the part would count as unknown. So an unreachable store
 * is asked until it is back, even past the lease: a process that has taken the conversation over has raised its epoch.
 */
async function settle(
  { store, clock }: DelivererDeps,
  settling: RecordDeliveryInput,
  stopping: AbortSignal,
): Promise<Delivery> {
  for (;;) {
    try {
      return await store.write(recordDelivery, settling);
    } catch (error) {
      if (!isStoreAway(error) || stopping.aborted) throw error;
      await clock.wait(settleAgainMs, stopping);
    }
  }
}

type CallSettings = { readonly log: Log; readonly sendTimeoutMs: number };

async function send(
  { adapter }: HostedChannel,
  part: Outbound,
  { log, sendTimeoutMs }: CallSettings,
): Promise<SendResult> {
  try {
    return await withLimit(sendTimeoutMs, undefined, (limited) => adapter.send(part, limited));
  } catch (error) {
    // A fault in the adapter itself: nobody can say whether the platform has it.
    log.error({ part: part.key, error }, 'delivery.adapter-failed');
    return ambiguous(part.content, error instanceof Error ? error.message : String(error));
  }
}

async function lookUp(
  { adapter }: HostedChannel,
  { part, since, log, sendTimeoutMs }: CallSettings & { readonly part: Outbound; readonly since: number },
): Promise<Found> {
  try {
    const { lookup } = adapter;
    if (!lookup) return { kind: 'unknown', reason: 'interrupted while sending' };
    return await withLimit(sendTimeoutMs, undefined, (limited) => lookup.find(part, since, limited));
  } catch (error) {
    log.error({ part: part.key, error }, 'delivery.lookup-failed');
    return { kind: 'unknown', reason: error instanceof Error ? error.message : String(error) };
  }
}

type Backoff = { readonly retries: number; readonly minBackoffMs: number; readonly maxBackoffMs: number };

/** A refused connection costs nothing, and people wait for what is due when the platform is back. */
const outagePauseMs = 3_000;

/**
 * A wait that the platform names is honoured for five minutes, and then it is asked again; our own grow
 * from 0.5 s to 30 s and are counted, except while the platform cannot be reached at all.
 */
export function applyBackoff(
  told: SendResult,
  attempts: number,
  { retries, minBackoffMs, maxBackoffMs }: Backoff,
): SendOutcome {
  const result = briefly(told);
  if (result.kind !== 'retry') return result;
  const askedMs = askedWaitMs(result.afterMs);
  if (askedMs) return { ...result, afterMs: retryAfterMs(askedMs), askedMs };
  if (result.isOutage) return { ...result, afterMs: outagePauseMs };
  if (attempts > retries) return { kind: 'exhausted', reason: result.reason };
  const step = Math.min(1, (attempts - 1) / Math.max(1, retries - 1));
  const factor = (maxBackoffMs / minBackoffMs) ** step;
  return { ...result, afterMs: Math.round(minBackoffMs * factor) };
}

/** A reason that a platform gives is stored, and read by the agent and the owner. */
const longestReason = 500;

function briefly<Said extends { readonly kind: string; readonly reason?: string }>(said: Said): Said {
  return said.reason === undefined ? said : { ...said, reason: fitChars(said.reason, longestReason) };
}

function placeOf(conversationKey: string): Pick<ReplyRoute, 'channel' | 'account'> {
  const [channel = '', account = ''] = conversationKey.split('/').map(decodeURIComponent);
  // The key was made from such a route.
  return { channel, account } as unknown as Pick<ReplyRoute, 'channel' | 'account'>;
}
