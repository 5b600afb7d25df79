/**
 * Reports whether a process is ready, component by component, for load balancers and operators. A configured
 * channel that is down makes it unready; one that is off, or that another process receives for, doesn't.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { timeText } from '#channel-kit/time-text.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { ChannelState } from '../channel-host/channel-state.ts';
import type { StatusProblem } from '../operations/status.ts';

/** Readiness of a process, with what it lacks. */
export type Readiness = {
  /** Names of missing components, for example `store` or `telegram`; empty when ready. */
  readonly missing: readonly string[];
  /** All components that were checked, including the missing ones. */
  readonly components?: readonly Component[];
};

/** Shown without a sign-in: its name, why it is down or degraded, since when, and the next retry, both in UTC. */
type Component = {
  readonly name: string;
  readonly state: 'ok' | 'down';
  readonly reason?: string;
  readonly since?: string;
  readonly nextTryAt?: string;
};

/** Components every process needs besides its channels, by the names reported when missing. */
export type Needs = { readonly needed: readonly string[]; readonly problems: readonly StatusProblem[] };

export type NamedState = { readonly id: string; readonly state: ChannelState };

/** Combines components and channels into one readiness. */
export function readinessOf({ needed, problems }: Needs, channels: readonly NamedState[]): Readiness {
  const components = [
    ...needed.map((name) => componentOf(name, problems)),
    ...channels.flatMap(({ id, state }) => channelComponent(id, state)),
  ];
  const missing = components.flatMap(({ name, state }) => (state === 'down' ? [name] : []));
  return { missing, components };
}

/** Builds the answer of `/readyz`: components that are down or degraded; with `verbose` in the query, all of them. */
export function readyAnswer({ missing, components = [] }: Readiness, url: string) {
  const isVerbose = new URLSearchParams(url.split('?')[1]).has('verbose');
  const shown = components.filter(
    ({ state, reason }) => isVerbose || state === 'down' || reason !== undefined,
  );
  const listed = shown.length === 0 ? {} : { components: shown };
  return missing.length === 0
    ? { code: 200, body: { status: 'ready', ...listed } }
    : { code: 503, body: { status: 'not ready', missing, ...listed } };
}

function componentOf(name: string, problems: readonly StatusProblem[]): Component {
  const problem = problems.find(({ id }) => id === name);
  return problem === undefined ? { name, state: 'ok' } : { name, state: 'down', reason: problem.text };
}

function channelComponent(name: string, state: ChannelState): readonly Component[] {
  switch (state.kind) {
    case 'off':
      return [];
    case 'on':
      return [{ name, state: 'ok', ...(state.reason !== undefined && { reason: state.reason }) }];
    case 'standby':
      return [{ name, state: 'ok' }];
    case 'starting':
      return [{ name, state: 'down', reason: 'connecting' }];
    case 'trouble': {
      const { reason, since, nextTryAt } = state;
      const next = nextTryAt === undefined ? {} : { nextTryAt: timeText(nextTryAt) };
      return [{ name, state: 'down', reason, since: timeText(since), ...next }];
    }
    default:
      return state satisfies never;
  }
}

/** Rejects when the answer takes longer, because a database that doesn't even return an error is unreachable too. */
export async function withinPatience<T>(answer: Promise<T>, patienceMs: number): Promise<T> {
  const answered = new AbortController();
  const silence = delay(patienceMs, undefined, { signal: answered.signal }).then(() => {
    throw new ParleyError('store_unavailable', "The database isn't responding.", {
      retry: { kind: 'later' },
    });
  });
  // It is aborted once there is an answer.
  silence.catch(() => undefined);
  try {
    return await Promise.race([answer, silence]);
  } finally {
    answered.abort();
  }
}
