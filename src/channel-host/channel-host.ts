/**
 * Looks after the connections: makes each adapter, finds out its account, holds the account's lease,
 * lets it receive, and starts it again after trouble. One channel's trouble is never another's.
 */
import type {
  ChannelDefinition,
  ChannelDeps,
  ChannelGap,
  ChannelTrouble,
  HostedChannel,
  Intake,
} from '#contracts/channel.ts';
import { channelLine } from '#contracts/channel-line.ts';
import type { Clock } from '#contracts/clock.ts';
import { hasCode, ParleyError } from '#contracts/errors.ts';
import type { ChannelId } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import { leanFetch } from '../http/lean-fetch.ts';
import type { LiveEvents } from '../queue/live-events.ts';
import { claimAccount, releaseAccount } from '../store/accounts.ts';
import type { Store } from '../store/command.ts';
import { accountKeyOf } from '../store/conversation-key.ts';
import { readAnchors } from '../store/intake/anchors.ts';
import { createRoster, type FindChannel, type Roster } from './roster.ts';

export type ChannelState =
  | { readonly kind: 'off'; readonly reason: string }
  | { readonly kind: 'starting' }
  | { readonly kind: 'on'; readonly account: string }
  | { readonly kind: 'standby'; readonly reason: string }
  | { readonly kind: 'trouble'; readonly problem: ChannelTrouble['kind']; readonly reason: string };

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
  /** False for a process that only sends: it claims no account and takes nothing in. */
  readonly receives: boolean;
  readonly live: Pick<LiveEvents, 'publish'>;
  /** The door for one account under its lease. */
  intakeFor(channel: HostedChannel, lease: AccountLeaseHeld): Pick<Intake, 'accept'>;
  /** Called when this process begins to receive for the account. */
  onReceiving(channel: HostedChannel): void;
  /** Called with each state, also with one that only repeats the last. `line`: see `channelLine`. */
  onState(line: string, state: ChannelState): void;
  /** Called when messages may have been missed for good. */
  onGap(channel: HostedChannel, gap: ChannelGap): void;
};

export type ConfiguredChannel = {
  readonly id: ChannelId;
  /** Of a network with several accounts; each is a connection of its own. */
  readonly accountName?: string;
  /** Loads the channel's code; only channels that are on are loaded. */
  load(): Promise<ChannelDefinition>;
  /** What the channel's own schema parses. */
  readonly settings: unknown;
  readonly deps: Omit<ChannelDeps, 'log' | 'clock' | 'fetch'>;
};

export interface ChannelHost extends FindChannel {
  /** Begins to run one account of a channel; resolves when its first attempt has ended, well or not. */
  run(channel: ConfiguredChannel): Promise<void>;
  /** By line: `telegram`, `telegram.work`. */
  states(): readonly { readonly id: string; readonly state: ChannelState }[];
  setOff(line: string, reason: string): void;
  /** Stops every intake; sending goes on working. */
  stopReceiving(): Promise<void>;
}

const leaseMs = 10_000;
const renewMs = 2_000;
const maxRetryMs = 30_000;

const logLevels = { off: 'info', starting: 'debug', on: 'info', standby: 'info', trouble: 'warn' } as const;

export function createChannelHost(deps: ChannelHostDeps): ChannelHost {
  const states = new Map<string, ChannelState>();
  const roster = createRoster(deps);
  const stopping = new AbortController();
  const loops: Promise<void>[] = [];

  const setState = (line: string, state: ChannelState) => {
    const before = states.get(line);
    states.set(line, state);
    deps.onState(line, state);
    if (before?.kind === state.kind) return;
    deps.log[logLevels[state.kind]]({ channel: line, ...state }, 'channel.state');
  };

  const run = async (channel: ConfiguredChannel): Promise<void> => {
    const line = channelLine(channel.id, channel.accountName);
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
        roster,
      }).finally(() => firstAttempt.resolve()),
    );
    await firstAttempt.promise;
  };

  return {
    run,
    ...roster,
    states: () => [...states].map(([id, state]) => ({ id, state })),
    setOff: (line, reason) => setState(line, { kind: 'off', reason }),
    stopReceiving: async () => {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}

type Supervised = {
  readonly deps: ChannelHostDeps;
  readonly channel: ConfiguredChannel;
  readonly signal: AbortSignal;
  setState(state: ChannelState): void;
  readonly roster: Roster;
};

async function supervise(supervised: Supervised): Promise<void> {
  const { deps, channel, signal, setState } = supervised;
  const log = deps.log.child({ channel: channelLine(channel.id, channel.accountName) });
  let hosted: HostedChannel | undefined;
  for (let attempt = 1; !signal.aborted; attempt++) {
    try {
      const definition = await channel.load();
      supervised.roster.define(definition);
      if (deps.receives || !definition.capabilities.isSessionBound)
        hosted ??= await identify(supervised, definition, log);
      if (!deps.receives || !hosted) return setState({ kind: 'standby', reason: 'this process only sends' });
      const ended = await receive(supervised, hosted);
      if (ended === 'received') attempt = 0;
      // Whoever waits for another process's lease looks again at once: this is no trouble.
      if (ended === 'busy') {
        attempt = 0;
        continue;
      }
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      const isRefused = hasCode(error, 'channel_unauthorised');
      setState({ kind: 'trouble', problem: isRefused ? 'unauthorised' : 'unreachable', reason });
      if (isFinal(error)) return;
    }
    const waitMs = Math.min(maxRetryMs, 500 * 2 ** Math.min(attempt, 6));
    await deps.clock.wait(waitMs, signal);
  }
}

/** Neither a wrong token nor wrong settings mend themselves. */
function isFinal(error: unknown): boolean {
  return hasCode(error, 'channel_unauthorised') || hasCode(error, 'config_invalid');
}

async function identify(
  { deps, channel, signal, roster }: Supervised,
  definition: ChannelDefinition,
  log: Log,
): Promise<HostedChannel> {
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
    fetch: leanFetch,
  });
  const account = await adapter.identify(signal);
  const hosted = { definition, adapter, account, ...(accountName !== undefined && { accountName }) };
  roster.enter(channelLine(id, accountName), hosted);
  return hosted;
}

/** Receives for as long as the lease is held; returns when it should be tried again. */
async function receive(
  { deps, channel, signal, setState, roster }: Supervised,
  hosted: HostedChannel,
): Promise<'received' | 'busy'> {
  const account = accountKeyOf({ channel: channel.id, account: hosted.account.id });
  const claim = () => deps.store.write(claimAccount, { account, holder: deps.holder, leaseMs });
  const lease = await claim();
  if (lease.kind === 'busy') {
    roster.letGo(account);
    setState({ kind: 'standby', reason: 'another process receives for this account' });
    await deps.clock.wait(Math.min(lease.delayMs, renewMs), signal);
    return 'busy';
  }
  const { epoch, cursor } = lease;
  roster.hold(account);
  const lost = new AbortController();
  const isOn: ChannelState = { kind: 'on', account: hosted.account.name };
  const { accept } = deps.intakeFor(hosted, { account, epoch, cursor });
  let latest: ChannelTrouble | undefined;
  const trouble = (problem: ChannelTrouble | undefined) => {
    latest = problem;
    setState(problem ? { kind: 'trouble', problem: problem.kind, reason: problem.detail } : isOn);
    if (problem?.kind === 'unauthorised') lost.abort(new ParleyError('channel_unauthorised', problem.detail));
  };
  const anchors = new Map(await deps.store.read(readAnchors, { account }));
  const gap = (one: ChannelGap) => {
    deps.log.warn({ channel: channelLine(channel.id, channel.accountName), ...one }, 'channel.gap');
    deps.onGap(hosted, one);
  };
  await hosted.adapter.start({ cursor, anchors, accept, trouble, gap });
  // It may have met trouble while it started.
  trouble(latest);
  deps.onReceiving(hosted);
  try {
    const until = AbortSignal.any([signal, lost.signal]);
    while (!until.aborted) {
      await deps.clock.wait(renewMs, until);
      if (until.aborted) break;
      const renewed = await claim();
      if (renewed.kind !== 'held' || renewed.epoch !== epoch) break;
    }
  } finally {
    // What runs to its end while this process stops is still shown by it.
    if (!signal.aborted) roster.letGo(account);
    await hosted.adapter.stop();
    await deps.store.write(releaseAccount, { account, holder: deps.holder }).catch(() => undefined);
  }
  if (lost.signal.aborted) throw lost.signal.reason;
  return 'received';
}
