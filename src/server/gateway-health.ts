import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '#contracts/clock.ts';
import type { ChannelHost } from '../channel-host/channel-host.ts';
import type { ChannelState } from '../channel-host/channel-state.ts';
import { stripText } from '../logging/redaction.ts';
import type { ChannelStatus, GatewayStatus, StatusProblem } from '../operations/status.ts';
import type { FailureStreaks } from '../queue/failure-streaks.ts';
import type { Store } from '../store/base/command.ts';
import { readSessions } from '../store/reads/read-sessions.ts';
import type { StoreTrouble, WatchedStore } from '../store/watch-store.ts';
import type { Metrics } from './metrics/metrics.ts';
import { type Readiness, readinessOf } from './readiness.ts';

export type GatewayHealthDeps = {
  readonly store: WatchedStore;
  readonly clock: Clock;
  readonly version: string;
  readonly model: { readonly name: string; readonly isDemo: boolean };
  readonly channels: ChannelHost['states'];
  readonly meters: Metrics;
  isRedisReady(): boolean;
  /** Counters of failures in a row; those that have reached ten make the process unready. */
  readonly failures: Pick<FailureStreaks, 'lasting'>;
  /** Absent in a process without intake. */
  hasSpace?(): boolean;
  /** Problems of plugins, which are shown and don't make the process unready. */
  pluginProblems?(): readonly StatusProblem[];
  /** Removes secrets from what networks and databases report. */
  redact(text: string): string;
};

export type GatewayHealth = Pick<Metrics, 'metrics'> & {
  readiness(): Promise<Readiness>;
  status(): Promise<GatewayStatus>;
};

/** Reports the process's health: what it lacks and what runs. Its start time is the time of this call. */
export function gatewayHealth(deps: GatewayHealthDeps): GatewayHealth {
  const { clock, version } = deps;
  const channels = () =>
    deps.channels().map(({ id, state }) => ({ id, state: cleanState(state, deps.redact) }));
  const needed = ['store', 'redis', 'work', ...(deps.hasSpace ? ['disk space'] : [])];
  const { name, isDemo } = deps.model;
  const startedAt = clock.now();
  const pluginProblems = () =>
    (deps.pluginProblems?.() ?? []).map(({ id, text }) => ({ id, text: clean(text, deps.redact) }));
  let looking: Promise<readonly StatusProblem[]> | undefined;
  // Anybody may ask, as often as they like, so concurrent requests share one query.
  const findNow = () => {
    looking ??= findProblems(deps).finally(() => {
      looking = undefined;
    });
    return looking;
  };
  return {
    metrics: deps.meters.metrics,
    readiness: async () => readinessOf({ needed, problems: await findNow() }, channels()),
    status: async () => ({
      version,
      startedAt,
      model: { name, isDemo },
      channels: channels().map(channelStatus),
      problems: [...(await findNow()), ...pluginProblems()],
    }),
  };
}

async function findProblems(deps: GatewayHealthDeps): Promise<readonly StatusProblem[]> {
  const trouble = await findTrouble(deps.store);
  return [
    ...(trouble === undefined ? [] : [{ id: 'store', text: clean(wordsForStore(trouble), deps.redact) }]),
    ...(deps.isRedisReady() ? [] : [{ id: 'redis', text: redisWords }]),
    ...workProblems(deps),
    ...(deps.hasSpace?.() === false ? [{ id: 'disk space', text: diskWords }] : []),
  ];
}

/** Names the first part that fails each time and its cause; the log and the owner's alerts name them all. */
function workProblems({ failures, redact }: GatewayHealthDeps): readonly StatusProblem[] {
  const [first, ...others] = failures.lasting();
  if (first === undefined) return [];
  const rest = others.length === 0 ? '' : ` And ${others.length} more.`;
  const text = `${first.part} has failed ${first.failures} times in a row: ${first.cause}.${rest}`;
  return [{ id: 'work', text: clean(text, redact) }];
}

const longestReason = 300;

/** Redacts and shortens a text, because any client that reaches the port can read it. */
function clean(text: string, redact: GatewayHealthDeps['redact']): string {
  return stripText(redact(text)).slice(0, longestReason).toWellFormed();
}

function cleanState(state: ChannelState, redact: GatewayHealthDeps['redact']): ChannelState {
  return 'reason' in state && state.reason !== undefined
    ? { ...state, reason: clean(state.reason, redact) }
    : state;
}

const redisWords = "Redis isn't responding. Messages are still answered, some later.";
const diskWords =
  'The data folder has less than 200 MB of free disk space. Until it has more, messages wait for as long as their networks keep them.';

function wordsForStore({ reason }: Pick<StoreTrouble, 'reason'>): string {
  return `The database can't be used: ${reason} Until it's back, messages wait for as long as their networks keep them.`;
}

/** A database that doesn't even return an error within this time, ms, is unreachable too. */
const patienceMs = 3_000;

/** Returns what is wrong with the store, which must be readable now and must have accepted the last write. */
async function findTrouble(store: WatchedStore): Promise<Pick<StoreTrouble, 'reason'> | undefined> {
  const ended = new AbortController();
  const silence = delay(patienceMs, { reason: `no answer within ${patienceMs / 1000} s.` }, ended);
  try {
    return (await Promise.race([readingTrouble(store), silence.catch(() => undefined)])) ?? store.trouble();
  } finally {
    ended.abort();
  }
}

async function readingTrouble(store: Store): Promise<Pick<StoreTrouble, 'reason'> | undefined> {
  try {
    await store.read(readSessions, { limit: 1 });
    return undefined;
  } catch (error) {
    return { reason: error instanceof Error ? error.message : String(error) };
  }
}

/** Describes a channel's state for the page and `parley status`. */
export function channelStatus({
  id,
  state,
}: {
  readonly id: string;
  readonly state: ChannelState;
}): ChannelStatus {
  switch (state.kind) {
    case 'on':
      return { id, state: 'on', detail: shownAccount(state) };
    case 'off':
      return { id, state: 'off', detail: state.reason };
    case 'starting':
      return { id, state: 'trouble', detail: 'connecting' };
    case 'standby':
      return { id, state: 'standby', detail: state.reason };
    case 'trouble': {
      const { reason: detail, since, nextTryAt } = state;
      return { id, state: 'trouble', detail, since, ...(nextTryAt !== undefined && { nextTryAt }) };
    }
    default:
      return state satisfies never;
  }
}

/** Returns the account's name, with the reason when the channel is degraded. */
function shownAccount({ account, reason }: Extract<ChannelState, { kind: 'on' }>): string {
  return reason === undefined ? account : `${account} (degraded: ${reason})`;
}
