/**
 * Finds the channel that serves a route in this process. A session-bound channel (web, terminal) exists where its
 * account is held. In other processes a stand-in replaces it, so that answers are shaped for it and their drafts
 * are passed to the process that has the clients. Only that process delivers; the stand-in never does.
 */

import { backoffMs, slowRetryMs } from '#channel-kit/backoff.ts';
import { retryAfterMs } from '#channel-kit/remote-number.ts';
import { withLimit } from '#channel-kit/with-limit.ts';
import type { Capabilities } from '#contracts/capabilities.ts';
import type { ChannelAdapter, ChannelDefinition, ChannelTrouble, HostedChannel } from '#contracts/channel.ts';
import { hasCode, ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { LiveEvent, LiveEvents } from '../queue/live-events.ts';
import { accountKeyOf } from '../store/base/keys.ts';

export type AccountRef = Pick<ReplyRoute, 'channel' | 'account'>;
export type Draft = Extract<LiveEvent, { kind: 'draft' }>;

export interface FindChannel {
  /** Returns the channel of a route, or its stand-in, to shape an answer and show that it is being written. */
  find(route: AccountRef): HostedChannel | undefined;
  /** Returns what the channel of a route can do, also while it isn't connected; undefined if it is off. */
  capabilitiesFor(route: AccountRef): Capabilities | undefined;
  /** Returns the channel if this process may deliver through it. */
  serving(route: AccountRef): HostedChannel | undefined;
  /** Returns the channel if this process holds its account. */
  holding(route: AccountRef): HostedChannel | undefined;
  /** Shows the draft of an answer that another process is writing, if the channel's clients are here. */
  showDraft(draft: Draft): void;
}

export interface ChannelRegistry extends FindChannel {
  /** Registers a channel's definition. */
  define(definition: ChannelDefinition): void;
  /** Registers a connection. Throws `config_invalid` when another connection has the same account. */
  enter(line: string, channel: HostedChannel): void;
  /** Returns the account last found for a connection; see `accountKeyOf`. */
  accountOf(line: string): string | undefined;
  /** `account`: see `accountKeyOf`. */
  hold(account: string): void;
  markReleased(account: string): void;
}

export function createChannelRegistry(deps: {
  readonly log: Log;
  readonly live: Pick<LiveEvents, 'publish'>;
}): ChannelRegistry {
  const { log, live } = deps;
  const entered = new Map<string, { readonly line: string; readonly channel: HostedChannel }>();
  const accounts = new Map<string, string>();
  const definitions = new Map<string, ChannelDefinition>();
  const held = new Set<string>();

  const at = (route: AccountRef) => entered.get(accountKeyOf(route))?.channel;
  const isHeld = (route: AccountRef) => held.has(accountKeyOf(route));
  const serving = (route: AccountRef) => {
    const channel = at(route);
    return channel && (isHeld(route) || !channel.definition.capabilities.isSessionBound)
      ? channel
      : undefined;
  };
  const showDraft = ({ route, draftId, text }: Draft) => {
    const preview = at(route)?.adapter.preview;
    if (!preview) return;
    withLimit(draftMs, undefined, (limited) => preview.draft(route, draftId, text, limited)).catch(
      (error: unknown) => log.debug({ error }, 'preview.failed'),
    );
  };
  const standIn = standInAdapter((draft) => {
    if (isHeld(draft.route)) showDraft(draft);
    else live.publish(draft);
  });
  return {
    define: (definition) => void definitions.set(definition.id, definition),
    enter: (line, channel) => {
      const key = accountKeyOf({ channel: channel.definition.id, account: channel.account.id });
      rejectDuplicateAccount(line, channel, entered.get(key)?.line);
      entered.set(key, { line, channel });
      accounts.set(line, key);
    },
    accountOf: (line) => accounts.get(line),
    hold: (account) => void held.add(account),
    markReleased: (account) => void held.delete(account),
    find: (route) => {
      const { channel, account } = route;
      const definition = definitions.get(channel);
      const here = serving(route);
      if (here || !definition?.capabilities.isSessionBound) return here;
      return { definition, adapter: standIn, account: { id: account, name: channel } };
    },
    capabilitiesFor: ({ channel }) => definitions.get(channel)?.capabilities,
    serving,
    holding: (route) => (isHeld(route) ? at(route) : undefined),
    showDraft: (draft) => {
      if (isHeld(draft.route)) showDraft(draft);
    },
  };
}

const draftMs = 10_000;

/** Two connections of one bot would take messages from each other. */
function rejectDuplicateAccount(line: string, { account }: HostedChannel, other: string | undefined): void {
  if (other === undefined || other === line) return;
  throw new ParleyError(
    'config_invalid',
    `${line} is the same account (${account.name}) as ${other}; keep one of them.`,
  );
}

function standInAdapter(show: (draft: Draft) => void): ChannelAdapter {
  const refuse = () => Promise.reject(new ParleyError('internal', 'Another process has this channel.'));
  return {
    identify: refuse,
    start: refuse,
    stop: async () => undefined,
    send: refuse,
    preview: {
      draft: async (route, draftId, text) => show({ kind: 'draft', route, draftId, text }),
    },
  };
}

/** Thrown to end a connection that its adapter has given up on. */
export class RefusedByNetwork extends Error {
  readonly problem: ChannelTrouble;

  constructor(problem: ChannelTrouble) {
    super(problem.detail);
    this.problem = problem;
  }
}

/** Decides when a connection is retried: soon after an outage, slowly after a refusal, but always eventually. */
export interface Retries {
  /** Counts a failed attempt. `waitMs`: time until the next one. */
  after(error: unknown): { readonly problem: ChannelTrouble; readonly waitMs: number };
  /** Returns the wait, ms, after a connection that ended normally. */
  afterRest(): number;
  /** Resets the counts, because the network has answered. */
  proven(): void;
  /** Returns the last refusal, until the connection is known to work. */
  refusal(): ChannelTrouble | undefined;
}

const firstRetryMs = 500;
const longestRetryMs = 30_000;

export function createRetries({ random }: { readonly random?: () => number }): Retries {
  let failures = 0;
  let refusals = 0;
  let refusal: ChannelTrouble | undefined;
  return {
    after: (error) => {
      const refused = refusalIn(error);
      if (refused) {
        refusal = refused;
        refusals += 1;
        return { problem: refused, waitMs: slowRetryMs(refusals, random) };
      }
      failures += 1;
      const ownMs = backoffMs(failures + 1, { firstMs: firstRetryMs, longestMs: longestRetryMs });
      const detail = error instanceof Error ? error.message : String(error);
      return {
        problem: { kind: 'unreachable', code: 'no-answer', detail },
        waitMs: Math.max(ownMs, askedMs(error)),
      };
    },
    afterRest: () => {
      failures = 0;
      return firstRetryMs;
    },
    proven: () => {
      failures = 0;
      refusals = 0;
      refusal = undefined;
    },
    refusal: () => refusal,
  };
}

/** Wrong tokens and settings don't fix themselves soon, but a refusal may be a mistake, so it is retried slowly. */
function refusalIn(error: unknown): ChannelTrouble | undefined {
  if (error instanceof RefusedByNetwork) return error.problem;
  const detail = error instanceof Error ? error.message : '';
  if (hasCode(error, 'channel_unauthorised'))
    return { kind: 'unauthorised', code: 'bad-credentials', detail };
  return hasCode(error, 'config_invalid') ? { kind: 'unreachable', code: 'settings', detail } : undefined;
}

/** Returns the wait that the network asked for, within reason. */
function askedMs(error: unknown): number {
  const advice = error instanceof ParleyError ? error.retry : undefined;
  return advice?.kind === 'later' && advice.afterMs !== undefined ? retryAfterMs(advice.afterMs) : 0;
}
