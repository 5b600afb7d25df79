/**
 * Manages the connections: creates each adapter, finds its account, holds the account's lease, lets it
 * receive, and restarts it after problems. One channel's problems never affect another.
 */
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { waitInStep } from '#channel-kit/system-clock.ts';
import type { Acceptance } from '#contracts/acceptance.ts';
import type {
  ChannelDefinition,
  ChannelDeps,
  ChannelGap,
  ChannelTrouble,
  HostedChannel,
  InboundBatch,
  Intake,
} from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import { isStoreAway, ParleyError } from '#contracts/errors.ts';
import { type ChannelId, connectionName, type EventKey } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import { outboundFetch } from '../http/outbound-fetch.ts';
import type { LiveEvents } from '../queue/live-events.ts';
import type { Store } from '../store/base/command.ts';
import { accountKeyOf } from '../store/base/keys.ts';
import { readAnchors } from '../store/intake/event.ts';
import { type AccountLease, claimAccount, releaseAccount } from '../store/processes/accounts.ts';
import { createCallPace } from './call-pace.ts';
import {
  type ChannelRegistry,
  createChannelRegistry,
  createRetries,
  type FindChannel,
  RefusedByNetwork,
  type Retries,
} from './channel-registry.ts';
import { type ChannelState, type NewState, stateOf } from './channel-state.ts';

export type AccountLeaseHeld = {
  readonly account: string;
  readonly epoch: number;
  readonly cursor: string | undefined;
};

export type ChannelHostDeps = {
  readonly store: Store;
  readonly holder: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns a number in [0, 1). Default: `Math.random`. */
  readonly random?: () => number;
  /** False for a process that only sends: it claims no account and accepts no events. */
  readonly receives: boolean;
  /** True if no other process can claim an account. Default: false. */
  readonly isAlone?: boolean;
  readonly live: Pick<LiveEvents, 'publish'>;
  /** Creates the intake of one account under its lease. */
  intakeFor(channel: HostedChannel, lease: AccountLeaseHeld): Pick<Intake, 'accept'>;
  /** Called when this process starts to receive for the account. */
  onReceiving(channel: HostedChannel): void;
  /**
   * Called with each state, even if it repeats the last one. `line`: see `connectionName`; `account`: see
   * `accountKeyOf`, undefined until it is known.
   */
  onState(line: string, state: ChannelState, account: string | undefined): void;
  /** Called when messages may have been missed for good. */
  onGap(channel: HostedChannel, gap: ChannelGap): void;
};

export type ConfiguredChannel = {
  readonly id: ChannelId;
  /** Name of one of the network's accounts, each of which is a separate connection. */
  readonly accountName?: string;
  /** Loads the channel's code; only channels that are on are loaded. */
  load(): Promise<ChannelDefinition>;
  /** Input of the channel's own schema. */
  readonly settings: unknown;
  readonly deps: Omit<ChannelDeps, 'log' | 'clock' | 'fetch'>;
};

/** Runs every configured connection, each independent of the others. */
export interface ChannelHost extends FindChannel {
  /** Starts one account of a channel; resolves when its first attempt has succeeded or failed. */
  run(channel: ConfiguredChannel): Promise<void>;
  /** Returns the states; `id` is the connection's name, such as `telegram` or `telegram.work`. */
  states(): readonly { readonly id: string; readonly state: ChannelState }[];
  setOff(line: string, reason: string): void;
  /** Stops every intake; sending keeps working. */
  stopReceiving(): Promise<void>;
}

const leaseMs = 10_000;
/** Minimum time between two attempts to claim a lease that another process holds. */
const minClaimIntervalMs = 250;
/** Adapters limit their own calls; these limits are for those that don't. */
const identifyLimitMs = 2 * 60_000;
const startLimitMs = 2 * 60_000;
const stopLimitMs = 60_000;
/** Returns why a channel that is on is degraded; undefined in every other state. */
const degradation = (state: ChannelState) => (state.kind === 'on' ? state.reason : undefined);

/** After a refusal, a channel that reports no problem for this long counts as working again. */
const probationMs = 90_000;

const logLevels = { off: 'info', starting: 'debug', on: 'info', standby: 'info', trouble: 'warn' } as const;

/** Creates a host without connections; `run` adds them. */
export function createChannelHost(deps: ChannelHostDeps): ChannelHost {
  const states = new Map<string, ChannelState>();
  const registry = createChannelRegistry(deps);
  const stopping = new AbortController();
  const loops: Promise<void>[] = [];

  const setState = (line: string, said: NewState) => {
    const before = states.get(line);
    const since = before?.kind === 'trouble' ? before.since : deps.clock.now();
    const state: ChannelState = said.kind === 'trouble' ? { ...said, since } : said;
    states.set(line, state);
    deps.onState(line, state, registry.accountOf(line));
    if (before?.kind === state.kind && degradation(before) === degradation(state)) return;
    // The status table shows how each one began.
    const hasBegun = before !== undefined && before.kind !== 'starting';
    const level = hasBegun || state.kind === 'trouble' ? logLevels[state.kind] : 'debug';
    deps.log[level]({ channel: line, ...state }, 'channel.state-changed');
  };

  const run = async (channel: ConfiguredChannel): Promise<void> => {
    const line = connectionName(channel.id, channel.accountName);
    setState(line, { kind: 'starting' });
    const firstAttempt = Promise.withResolvers<void>();
    loops.push(
      supervise({
        deps,
        channel,
        signal: stopping.signal,
        setState: (state) => {
          setState(line, state);
          if (state.kind !== 'starting') firstAttempt.resolve();
        },
        registry,
        retries: createRetries(deps),
      }).finally(() => firstAttempt.resolve()),
    );
    await firstAttempt.promise;
  };

  return {
    run,
    ...registry,
    states: () => [...states].map(([id, state]) => ({ id, state })),
    setOff: (line, reason) => setState(line, { kind: 'off', reason }),
    stopReceiving: async () => {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}

type Supervision = {
  readonly deps: ChannelHostDeps;
  readonly channel: ConfiguredChannel;
  readonly signal: AbortSignal;
  setState(state: NewState): void;
  readonly registry: ChannelRegistry;
  readonly retries: Retries;
};

/** Runs until the signal aborts: even a refused connection is retried, only more slowly. */
async function supervise(supervised: Supervision): Promise<void> {
  const { deps, channel, signal, setState, retries } = supervised;
  const log = deps.log.child({ channel: connectionName(channel.id, channel.accountName) });
  let hosted: HostedConnection | undefined;
  while (!signal.aborted) {
    try {
      const definition = await channel.load();
      supervised.registry.define(definition);
      if (deps.receives || !definition.capabilities.isSessionBound)
        hosted ??= await identify(supervised, definition, log);
      if (!deps.receives || !hosted) return setState({ kind: 'standby', reason: 'this process only sends' });
      const ended = await receive(supervised, hosted);
      // Waiting for another process's lease isn't a problem: retry immediately.
      if (ended === 'busy') retries.proven();
      else await deps.clock.wait(retries.afterRest(), signal);
    } catch (error) {
      if (signal.aborted) return;
      const { problem, waitMs } = retries.after(error);
      // Nothing learned about the old account may outlast it.
      if (problem.code === 'server-changed') hosted = undefined;
      setState({
        kind: 'trouble',
        problem: problem.kind,
        reason: problem.detail,
        code: problem.code,
        nextTryAt: deps.clock.now() + waitMs,
      });
      await deps.clock.wait(waitMs, signal);
    }
  }
}

/** A connection whose account name is updated by its adapter. */
type HostedConnection = HostedChannel & { readonly account: { name: string } };

async function identify(
  { deps, channel, signal, registry }: Supervision,
  definition: ChannelDefinition,
  log: Log,
): Promise<HostedConnection> {
  const { id, accountName } = channel;
  const settings = definition.configSchema.safeParse(channel.settings);
  if (!settings.success) {
    const where = `channels.${id}${accountName === undefined ? '' : `.accounts.${accountName}`}`;
    const problems = settings.error.issues.map(
      (issue) => `${where}.${issue.path.join('.')}: ${issue.message}`,
    );
    throw new ParleyError('config_invalid', problems.join('; '));
  }
  const adapter = definition.create(settings.data, {
    ...channel.deps,
    log,
    clock: deps.clock,
    fetch: outboundFetch,
  });
  const limit = { clock: deps.clock, limitMs: identifyLimitMs, what: 'Asking for the account' };
  const { ...account } = await inTime(limit, (tooLate) =>
    adapter.identify(AbortSignal.any([signal, tooLate])),
  );
  const { callsPerSecond } = definition.capabilities;
  const pace = callsPerSecond === undefined ? undefined : createCallPace(callsPerSecond, deps.clock);
  const hosted = {
    ...{ definition, adapter, account },
    ...(accountName !== undefined && { accountName }),
    ...(pace && { pace }),
  };
  registry.enter(connectionName(id, accountName), hosted);
  return hosted;
}

/** Receives as long as the lease is held; returns when receiving should be retried. */
async function receive(supervised: Supervision, hosted: HostedConnection): Promise<'received' | 'busy'> {
  const { deps, channel, signal, setState, registry } = supervised;
  const account = accountKeyOf({ channel: channel.id, account: hosted.account.id });
  const claim = () => deps.store.write(claimAccount, { account, holder: deps.holder, leaseMs });
  const lease = await claim();
  if (lease.kind === 'busy') {
    registry.markReleased(account);
    setState({ kind: 'standby', reason: 'another process receives for this account' });
    await deps.clock.wait(Math.max(minClaimIntervalMs, Math.min(lease.delayMs, renewMs)), signal);
    return 'busy';
  }
  registry.hold(account);
  const [ended, closed] = [new AbortController(), new AbortController()];
  const until = AbortSignal.any([signal, ended.signal]);
  const intake = await intakeOf(supervised, hosted, { account, lease, ended, closed: closed.signal });
  const { clock } = deps;
  let trustedAt = Number.POSITIVE_INFINITY;
  const onKept = () => {
    intake.storeAnswers();
    if (clock.now() >= trustedAt) intake.trusted();
  };
  const onAway = (error: Error) => intake.storeAnswers(error.message);
  const { isAlone = false } = deps;
  const keeping = keepLease({ clock, isAlone, claim, epoch: lease.epoch, onKept, onAway }, until);
  try {
    const starting = inTime({ clock, limitMs: startLimitMs, what: 'Starting to receive' }, () =>
      hosted.adapter.start(intake),
    ).then(() => true);
    const hasBegun = await Promise.race([starting, keeping.then(() => false)]);
    if (hasBegun) {
      intake.started();
      deps.onReceiving(hosted);
      trustedAt = clock.now() + probationMs;
      await keeping;
    }
  } finally {
    ended.abort();
    await keeping.catch(() => undefined);
    // Runs that finish during shutdown are still shown by this process.
    if (!signal.aborted) registry.markReleased(account);
    await inTime({ clock, limitMs: stopLimitMs, what: 'Stopping' }, () => hosted.adapter.stop()).catch(
      (error: unknown) => deps.log.error({ account, error }, 'channel.not-stopped'),
    );
    await deps.store.write(releaseAccount, { account, holder: deps.holder }).catch(() => undefined);
    closed.abort();
  }
  if (ended.signal.reason instanceof RefusedByNetwork) throw ended.signal.reason;
  return 'received';
}

type Tenure = {
  readonly account: string;
  readonly lease: Pick<Extract<AccountLease, { kind: 'held' }>, 'epoch' | 'cursor' | 'heldUntil'>;
  /** Aborted with the reason for the end. */
  readonly ended: AbortController;
  /** Aborted once the adapter has been stopped. */
  readonly closed: AbortSignal;
};

type HostIntake = Intake & {
  /** Shows the state after the start. */
  started(): void;
  /** The adapter has received for long enough without reporting a problem, so it works. */
  trusted(): void;
  /** Reports whether the store could renew the lease; `fault`: why not. Until it can, no events are accepted. */
  storeAnswers(fault?: string): void;
};

/** Creates the intake of one tenure. After a refusal the channel stays in trouble until it is known to work. */
async function intakeOf(
  supervised: Supervision,
  hosted: HostedConnection,
  tenure: Tenure,
): Promise<HostIntake> {
  const { deps, channel, setState, retries } = supervised;
  const { account, lease, ended, closed } = tenure;
  const { epoch, cursor, heldUntil } = lease;
  let latest: ChannelTrouble | undefined = retries.refusal();
  let isOnProbation = latest !== undefined;
  let storeFault: string | undefined;
  const show = () => setState(stateOf(hosted.account.name, latest, storeFault));
  const trouble = (problem: ChannelTrouble | undefined) => {
    if (ended.signal.aborted) return;
    latest = problem;
    isOnProbation = false;
    if (!problem || problem.isDegraded) retries.proven();
    show();
    if (problem?.isOver || problem?.kind === 'unauthorised') ended.abort(new RefusedByNetwork(problem));
  };
  const gap = (one: ChannelGap) => {
    deps.log.warn(
      { channel: connectionName(channel.id, channel.accountName), ...one },
      'channel.gap-reported',
    );
    deps.onGap(hosted, one);
  };
  const { accept } = deps.intakeFor(hosted, { account, epoch, cursor });
  return {
    cursor,
    heldUntil,
    anchors: new Map(await deps.store.read(readAnchors, { account })),
    accept: async (batch) => {
      // An adapter that couldn't be stopped must not continue next to its replacement.
      if (closed.aborted) throw new ParleyError('stale_epoch', 'Receiving has ended.');
      const answers = await accept(batch);
      if (isOnProbation && batch.events.length > 0) trouble(undefined);
      for (const missed of unreadIn(batch, answers)) gap(missed);
      return answers;
    },
    trouble,
    renamed: (name) => {
      if (name === hosted.account.name) return;
      hosted.account.name = name;
      show();
    },
    gap,
    started: show,
    trusted: () => {
      if (isOnProbation) trouble(undefined);
      else retries.proven();
    },
    storeAnswers: (fault) => {
      const wasAway = storeFault !== undefined;
      storeFault = fault;
      if (wasAway !== (fault !== undefined)) show();
    },
  };
}

/**
 * Returns what to report about events that couldn't be read or stored, which may be messages; duplicates were reported
 * before. Events that the channel explains in the same words are one report.
 */
function unreadIn(
  { events, unreadable = [] }: InboundBatch,
  answers: readonly Acceptance[],
): readonly ChannelGap[] {
  const isUnread = (index: number) => {
    const answer = answers[index];
    return answer?.kind === 'refused' && answer.reason === 'unreadable';
  };
  const explained = new Map<string, ChannelGap>();
  const others: EventKey[] = [];
  for (const [index, one] of [...events, ...unreadable].entries()) {
    if (!isUnread(index)) continue;
    if ('gap' in one && one.gap !== undefined) explained.set(JSON.stringify(one.gap), one.gap);
    else others.push(one.eventKey);
  }
  const last = others.at(-1);
  if (last === undefined) return [...explained.values()];
  const reason = `unreadable events: ${others.length}; for the last, \`${parleyCommand} why ${last}\``;
  return [...explained.values(), { code: 'lost', reason }];
}

/**
 * Returns the result of a call into a channel that may never return. After `limitMs` it rejects with
 * `channel_unavailable` and aborts the call's signal.
 */
async function inTime<T>(
  { clock, limitMs, what }: { readonly clock: Clock; readonly limitMs: number; readonly what: string },
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const tooLate = new AbortController();
  const isDone = new AbortController();
  const limit = clock.wait(limitMs, isDone.signal).then(() => {
    const reason = `${what} took longer than ${Math.round(limitMs / 1000)} s`;
    const fault = new ParleyError('channel_unavailable', reason, { retry: { kind: 'later' } });
    tooLate.abort(fault);
    throw fault;
  });
  try {
    return await Promise.race([call(tooLate.signal), limit]);
  } finally {
    isDone.abort();
  }
}

/**
 * Interval of renewals of an account's lease, ms: a fifth of it, or half of it where no other process could claim the
 * account.
 */
const [renewMs, aloneRenewMs] = [2_000, 5_000] as const;
/**
 * A store that is unreachable for at most this long, ms, ends no connection: `accept` checks the epoch, and events that
 * a network doesn't repeat wait in the adapter. After a longer time they would be too many to keep.
 */
const storeAwayMs = 60_000;

type LeaseKeeping = {
  readonly clock: Clock;
  readonly isAlone: boolean;
  /** Claims the account again; its holder keeps the epoch. */
  claim(): Promise<AccountLease>;
  readonly epoch: number;
  /** Called after each renewal. */
  onKept(): void;
  /** Called for each renewal that the store didn't answer. */
  onAway(error: Error): void;
};

/**
 * Renews the lease, even while its adapter is starting, until another process has it or `until` aborts. Rejects when
 * the store has been unreachable for too long.
 */
async function keepLease(
  { clock, isAlone, claim, epoch, onKept, onAway }: LeaseKeeping,
  until: AbortSignal,
): Promise<void> {
  let keptAt = clock.now();
  for (;;) {
    // In step, so that the renewals of all accounts share a commit.
    await waitInStep(clock, isAlone ? aloneRenewMs : renewMs, until);
    if (until.aborted) return;
    const renewed = await claim().catch((error: unknown) => {
      if (!isStoreAway(error) || clock.now() - keptAt >= storeAwayMs) throw error;
      onAway(error);
    });
    if (renewed === undefined) continue;
    if (renewed.kind !== 'held' || renewed.epoch !== epoch) return;
    keptAt = clock.now();
    onKept();
  }
}
