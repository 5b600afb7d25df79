import { resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fitChars } from '#channel-kit/clean-text.ts';
import { askedWaitMs, longestWaitMs, retryAfterMs } from '#channel-kit/remote-number.ts';
import { ambiguous, sizesOf } from '#channel-kit/send-result.ts';
import { withLimit } from '#channel-kit/with-limit.ts';
import type { HostedChannel } from '#contracts/channel.ts';
import type { Found } from '#contracts/channel-abilities.ts';
import type { Clock } from '#contracts/clock.ts';
import { hasCode, isStoreAway } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import { filesOf, type Outbound, type SendResult, withFiles } from '#contracts/outbound.ts';
import type { Probe } from '#contracts/probe.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { bytesOf } from '../config/units.ts';
import type { FailureStreaks } from '../queue/failure-streaks.ts';
import { withCommands } from '../replies/with-commands.ts';
import type { Store } from '../store/base/command.ts';
import { conversationKeyOf, newRowId } from '../store/base/keys.ts';
import {
  type ClaimedDelivery,
  claimDelivery,
  type Delivery,
  type DeliveryPolicy,
  type RecordDeliveryInput,
  recordDelivery,
} from '../store/delivery/claim-delivery.ts';
import type { SendOutcome } from '../store/delivery/end-part.ts';
import type { ExpiryLimits } from '../store/delivery/expire-part.ts';
import { isMarkPart } from '../store/delivery/mark-part.ts';
import { type ByteBudget, createByteBudget } from './byte-budget.ts';
import type { SendJournal } from './send-journal.ts';

export type DelivererDeps = {
  readonly store: Store;
  /** Counts what fails in a row; absent where nobody asks. */
  readonly failures?: Pick<FailureStreaks, 'failed' | 'worked'>;
  readonly holder: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  readonly journal: Pick<SendJournal, 'begin' | 'end'>;
  /** Limits the files that are being uploaded, over all conversations. */
  readonly maxUploadsMb: number;
  /** Folder of the files that parts refer to. */
  readonly mediaDir: string;
  /** Returns the connection that serves a route in this process; undefined if another process has to. */
  adapterFor(route: Pick<ReplyRoute, 'channel' | 'account'>): HostedChannel | undefined;
  readonly settings: {
    readonly retries: number;
    readonly minBackoffMs: number;
    readonly maxBackoffMs: number;
    /** A call that takes longer is given up as unknown. */
    readonly sendTimeoutMs: number;
    readonly resendUnknown: boolean;
    readonly expireMs?: ExpiryLimits;
  };
  /** Called after each call for a part, for pages and clients. */
  onSettled(settled: SettledPart): void;
};

export type SettledPart = {
  readonly part: Outbound;
  readonly laneKey: string | undefined;
  readonly result: SendOutcome['kind'];
  /** Time from the commit that stored it to the platform's answer, ms. */
  readonly ageMs: number;
};

/** Delivers stored parts, conversation by conversation. */
export interface Deliverer {
  /**
   * Delivers the waiting parts of the conversation. Never waits, never throws; a call during a delivery is
   * noted. Returns false if another process has to deliver.
   */
  deliver(conversationKey: string): boolean;
  /**
   * Runs a commit with the terms on which it may claim the parts that it adds to this route, or undefined if the route
   * isn't served here. A claim that was committed although its answer was lost is delivered soon.
   */
  claimAlong<T>(route: ReplyRoute, commit: (sender: DeliveryPolicy | undefined) => Promise<T>): Promise<T>;
  /**
   * Delivers what such a commit has claimed. Resolves once the call had time to leave, so that the caller's next
   * work doesn't delay it; never rejects.
   */
  continueFrom(claimed: ClaimedDelivery): Promise<void>;
  /** Stops after the parts in progress, and those claimed meanwhile, have ended. */
  stop(): Promise<void>;
}

/** Returns the lease of a delivery, ms, which covers the longest call and the commit after it. */
function leaseOf({ sendTimeoutMs }: DelivererDeps['settings']): number {
  return 2 * sendTimeoutMs;
}

/** Creates step 10: one delivery at a time per conversation, in order; an ambiguous send is never repeated blindly. */
export function createDeliverer(deps: DelivererDeps): Deliverer {
  const [working, asked] = [new Map<string, DrainWork>(), new Set<string>()];
  const stopping = new AbortController();
  const [unanswered, uploads] = [new UnansweredClaims(), createByteBudget(bytesOf(deps.maxUploadsMb))];

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
    const draining = { conversationKey, claimed, unanswered, asked, uploads, stopping: stopping.signal };
    const level = unanswered.of(conversationKey).length > 0 ? 'debug' : 'warn';
    const again = await deliverCounted(deps, draining).catch((error: unknown) => {
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
      // The call is written to the socket at the end of this turn of the event loop.
      await nextTurn();
    },
    stop: async () => {
      stopping.abort();
      alarms.clear();
      while (working.size > 0) await Promise.all([...working.values()].map((entry) => entry.done));
    },
  };
}

/** Creates one alarm per key; a new one replaces the old. */
function createAlarms(ring: (key: string) => void) {
  const timers = new Map<string, NodeJS.Timeout>();
  return {
    set: (key: string, delayMs: number) => {
      clearTimeout(timers.get(key));
      const onTime = () => {
        timers.delete(key);
        ring(key);
      };
      // A timer over 2^31 ms fires immediately, and a lease taken with a wrong clock may last for years.
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
  /** Conversations being delivered with new parts that no step has looked for yet. */
  readonly asked: Set<string>;
  readonly uploads: ByteBudget;
  readonly stopping: AbortSignal;
};

/** Runs a step that looks for the conversation's next part: if it succeeds, it has seen all parts added before it. */
async function lookAhead<T>({ conversationKey, asked }: DrainInput, step: () => Promise<T>): Promise<T> {
  const wasAsked = asked.delete(conversationKey);
  try {
    return await step();
  } catch (error) {
    if (wasAsked) asked.add(conversationKey);
    throw error;
  }
}

/** Gives each claim its own id, so that a claim without a started call isn't mistaken for another one. */
async function deliverCounted(deps: DelivererDeps, draining: DrainInput): Promise<number | undefined> {
  const { conversationKey } = draining;
  try {
    const again = await deliverWaiting(deps, draining);
    deps.failures?.worked(conversationKey);
    return again;
  } catch (error) {
    deps.failures?.failed(conversationKey, error);
    throw error;
  }
}

function policyOf({ holder, settings }: DelivererDeps, { definition, adapter }: HostedChannel) {
  const { repeatSafeMs, showsOneReaction } = definition.capabilities;
  const canLookUp = adapter.lookup !== undefined;
  const leaseMs = leaseOf(settings);
  const { resendUnknown, expireMs } = settings;
  const ids = { holder, claimId: newRowId() };
  const policy = { ...ids, leaseMs, repeatSafeMs, canLookUp, showsOneReaction, resendUnknown };
  return { ...policy, ...(expireMs && { expireMs }) };
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
  // A lease may expire during its call: this process must not mistake its own part in flight for an interrupted one.
  if (!channel || working.has(conversationKey)) return commit(undefined);
  const policy = policyOf(deps, channel);
  const named = { conversationKey, claimId: policy.claimId };
  return unanswered.watch(named, () => commit(policy));
}

/** Pause after a claim without an answer. */
const claimAgainMs = 1_000;

/** Claims the conversation, even if this process has already claimed it without learning of it. */
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

/** Sends part after part; returns the delay in ms until the next check, if one is needed. */
async function deliverWaiting(deps: DelivererDeps, draining: DrainInput): Promise<number | undefined> {
  const { conversationKey, claimed, unanswered, uploads, stopping } = draining;
  const { clock, probe, journal } = deps;
  const channel = deps.adapterFor(placeOf(conversationKey));
  if (!channel) return undefined;
  let delivery = claimed ?? (await claim(deps, channel, draining));
  while (delivery.kind === 'part') {
    const { part, epoch, laneKey, attempts, mayHaveArrivedSince } = delivery;
    probe.reach('outbox-claimed');
    const hasTurn = (await channel.pace?.turn(deps.settings.sendTimeoutMs / 3, stopping)) !== false;
    const release = hasTurn ? await enterUpload(deps, channel, delivery, { uploads, stopping }) : undefined;
    // Until the journal says that the call has begun, a killed process leaves no doubt whether it was made.
    if (release) journal.begin(part.key);
    const calledAt = clock.now();
    const settled = release
      ? await callPlatform(deps, channel, delivery).finally(release)
      : applyBackoff(othersFirst(hasTurn ? 'files' : 'parts'), attempts, deps.settings);
    const ageMs = delivery.ageMs + clock.now() - calledAt;
    const policy = { ...policyOf(deps, channel), conversationKey };
    const settling = { ...policy, epoch, partKey: part.key, attempts, mayHaveArrivedSince, result: settled };
    delivery = await lookAhead(draining, () =>
      unanswered.watch(policy, () => settle(deps, { ...settling, claimsNext: !stopping.aborted }, stopping)),
    );
    journal.end(part.key);
    probe.reach('marked');
    if (release && settled.kind === 'retry' && settled.askedMs !== undefined) channel.pace?.refused();
    if (settled.kind !== 'sent')
      deps.log[isMarkPart(part.key) ? 'debug' : 'warn'](
        { part: part.key, result: settled },
        'delivery.not-confirmed',
      );
    deps.onSettled({ part, laneKey, result: settled.kind, ageMs });
  }
  return delivery.kind === 'empty' ? undefined : delivery.delayMs;
}

type ClaimedPart = Extract<Delivery, { kind: 'part' }>;

/** Too many parts, or files, are on their way elsewhere. The part is claimed again soon, and its attempt isn't counted. */
function othersFirst(what: string): SendResult {
  return { kind: 'retry', afterMs: 0, reason: `other ${what} are sent first`, isOutage: true };
}

/**
 * Waits until the part's files may be uploaded, which a part without files may at once. Waits only while the delivery's
 * lease surely lasts for the call, too; then returns undefined.
 */
async function enterUpload(
  { settings, mediaDir }: DelivererDeps,
  { definition }: HostedChannel,
  { part, step }: ClaimedPart,
  { uploads, stopping }: Pick<DrainInput, 'uploads' | 'stopping'>,
): Promise<(() => void) | undefined> {
  // Clients read files from this host.
  if (part.content.kind !== 'media' || step !== 'send' || definition.capabilities.isSessionBound)
    return () => undefined;
  const sizes = (await sizesOf(withPaths(part, mediaDir).content)) ?? [];
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  return withLimit(settings.sendTimeoutMs / 2, stopping, (limited) => uploads.take(bytes, limited));
}

async function callPlatform(
  { probe, log, settings, mediaDir }: DelivererDeps,
  channel: HostedChannel,
  { part: claimed, attempts, step, mayHaveArrivedSince }: ClaimedPart,
): Promise<SendOutcome> {
  const shown = channel.definition.capabilities.canPress ? claimed : withCommands(claimed);
  const part = withPaths(shown, mediaDir);
  if (step === 'look-up') {
    const { sendTimeoutMs } = settings;
    const found = await lookUp(channel, { part, since: mayHaveArrivedSince ?? 0, log, sendTimeoutMs });
    return { kind: 'looked-up', found: truncateReason(found) };
  }
  probe.reach('sending');
  const { sendTimeoutMs } = settings;
  const limitMs = isMarkPart(part.key) ? Math.min(sendTimeoutMs, longestMarkMs) : sendTimeoutMs;
  const result = await send(channel, part, { log, sendTimeoutMs: limitMs });
  probe.reach('sent-not-marked');
  return applyBackoff(result, attempts, settings);
}

function withPaths(part: Outbound, mediaDir: string): Outbound {
  const { content } = part;
  if (content.kind !== 'media') return part;
  const files = filesOf(content).map((file) => ({ ...file, path: resolve(mediaDir, file.path) }));
  return { ...part, content: withFiles(content, files) };
}

const settleAgainMs = 500;

/**
 * Records the platform's answer, which only this process knows; without it the part would count as unknown. So an
 * unreachable store is retried until it is back, even after the lease has expired: a process that has taken over the
 * conversation has raised its epoch.
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

/** An answer waits behind a mark's call no longer than this, ms. */
const longestMarkMs = 3_000;

type CallSettings = { readonly log: Log; readonly sendTimeoutMs: number };

async function send(
  { adapter }: HostedChannel,
  part: Outbound,
  { log, sendTimeoutMs }: CallSettings,
): Promise<SendResult> {
  try {
    return await withLimit(sendTimeoutMs, undefined, (limited) => adapter.send(part, limited));
  } catch (error) {
    // A fault in the adapter itself: the platform may or may not have the part.
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

/** Short, because a refused connection costs nothing and people are waiting for the platform to be back. */
const outagePauseMs = 3_000;

/**
 * Decides the wait before a retry. A wait that the platform asks for is honoured for up to five minutes, then the call
 * is retried. Our own waits grow from 0.5 s to 30 s and are counted, except while the platform is unreachable.
 */
export function applyBackoff(
  told: SendResult,
  attempts: number,
  { retries, minBackoffMs, maxBackoffMs }: Backoff,
): SendOutcome {
  const result = truncateReason(told);
  if (result.kind !== 'retry') return result;
  const askedMs = askedWaitMs(result.afterMs);
  if (askedMs) return { ...result, afterMs: retryAfterMs(askedMs), askedMs };
  if (result.isOutage) return { ...result, afterMs: outagePauseMs };
  if (attempts > retries) return { kind: 'exhausted', reason: result.reason };
  const step = Math.min(1, (attempts - 1) / Math.max(1, retries - 1));
  const factor = (maxBackoffMs / minBackoffMs) ** step;
  return { ...result, afterMs: Math.round(minBackoffMs * factor) };
}

/** A platform's reason is stored, and read by the agent and the owner, so it is bounded. */
const longestReason = 500;

function truncateReason<Said extends { readonly kind: string; readonly reason?: string }>(said: Said): Said {
  return said.reason === undefined ? said : { ...said, reason: fitChars(said.reason, longestReason) };
}

function placeOf(conversationKey: string): Pick<ReplyRoute, 'channel' | 'account'> {
  const [channel = '', account = ''] = conversationKey.split('/').map(decodeURIComponent);
  // The key was built from such a route.
  return { channel, account } as unknown as Pick<ReplyRoute, 'channel' | 'account'>;
}

/**
 * Commits that may have claimed a conversation for this process without its knowledge, because they failed or their
 * answers were lost. Such a claim never starts a call, so the next claim takes it over by its id.
 */
type NamedClaim = { readonly conversationKey: string; readonly claimId: string };

class UnansweredClaims {
  readonly #ids = new Map<string, readonly string[]>();

  of(conversationKey: string): readonly string[] {
    return this.#ids.get(conversationKey) ?? [];
  }

  /** Runs a commit and keeps its id if it fails. Rejects with the commit's error. */
  async watch<T>({ conversationKey, claimId }: NamedClaim, commit: () => Promise<T>): Promise<T> {
    try {
      return await commit();
    } catch (error) {
      // A commit that was rejected because of another holder's epoch has claimed nothing.
      if (!hasCode(error, 'stale_epoch')) this.#keep(conversationKey, [...this.of(conversationKey), claimId]);
      throw error;
    }
  }

  /** Drops ids that the store was asked for: their claim was taken over, or didn't exist. */
  forget(conversationKey: string, ids: readonly string[]): void {
    this.#keep(
      conversationKey,
      this.of(conversationKey).filter((id) => !ids.includes(id)),
    );
  }

  #keep(conversationKey: string, ids: readonly string[]): void {
    if (ids.length === 0) this.#ids.delete(conversationKey);
    else this.#ids.set(conversationKey, [...new Set(ids)]);
  }
}
