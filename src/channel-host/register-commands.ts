import { createHash } from 'node:crypto';
import { backoffMs } from '#channel-kit/backoff.ts';
import { clampRemote } from '#channel-kit/remote-number.ts';
import type { HostedChannel } from '#contracts/channel.ts';
import type { CommandsAbility, NativeCommand } from '#contracts/channel-abilities.ts';
import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { Store } from '../store/base/command.ts';
import { accountKeyOf } from '../store/base/keys.ts';
import { readCommandsHash, rememberCommands } from '../store/processes/accounts.ts';

export type CommandRegistrarDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** Read at each registration, since plugins add to it after a channel was created. */
  readonly commands: readonly NativeCommand[];
};

export interface CommandRegistrar {
  /** Registers the commands with the network if they differ from the last ones. Never waits, never throws. */
  register(channel: HostedChannel): void;
  /** Registers them again where they have changed. */
  refresh(): void;
  stop(): Promise<void>;
}

const timeoutMs = 30_000;
const firstRetryMs = 60_000;
const longestRetryMs = 3_600_000;

/**
 * Writes the network's own command menu. The menu is a convenience, so it is written in the background, only
 * when it has changed (writing it at every start has got others banned), and retried later on failure.
 */
export function createCommandRegistrar(deps: CommandRegistrarDeps): CommandRegistrar {
  const stopping = new AbortController();
  const working = new Map<string, Promise<void>>();
  const known = new Map<string, HostedChannel>();
  const register = (channel: HostedChannel): void => {
    const { adapter, account, definition } = channel;
    const key = accountKeyOf({ channel: definition.id, account: account.id });
    known.set(key, channel);
    const { commands: ability } = adapter;
    if (ability === undefined || working.has(key)) return;
    const task = keepTrying(deps, { key, ability, signal: stopping.signal });
    working.set(
      key,
      task.finally(() => working.delete(key)),
    );
  };
  return {
    register,
    refresh: () => {
      // One that is being written may be an earlier list.
      for (const [key, channel] of known)
        void Promise.resolve(working.get(key)).then(() => register(channel));
    },
    stop: async () => {
      stopping.abort();
      await Promise.all(working.values());
    },
  };
}

type Registration = { readonly key: string; readonly ability: CommandsAbility; readonly signal: AbortSignal };

async function keepTrying(deps: CommandRegistrarDeps, registration: Registration): Promise<void> {
  const { key, signal } = registration;
  for (let attempt = 1; !signal.aborted; attempt++) {
    try {
      await registerChanged(deps, registration);
      return;
    } catch (error) {
      if (signal.aborted) return;
      const retryMs = Math.max(
        backoffMs(attempt, { firstMs: firstRetryMs, longestMs: longestRetryMs }),
        askedMs(error),
      );
      deps.log.warn({ account: key, error, retryMs }, 'commands.not-registered');
      await deps.clock.wait(retryMs, signal);
    }
  }
}

async function registerChanged(
  { store, log, commands }: CommandRegistrarDeps,
  { key, ability, signal }: Registration,
): Promise<void> {
  const hash = createHash('sha256').update(JSON.stringify(commands)).digest('hex');
  if ((await store.read(readCommandsHash, { account: key })) === hash) return;
  await ability.register(commands, AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]));
  await store.write(rememberCommands, { account: key, hash });
  log.info({ account: key, count: commands.length }, 'commands.registered');
}

/** Returns the wait that the network asked for; nothing depends on the menu, so it may be longer than elsewhere. */
function askedMs(error: unknown): number {
  const advice = error instanceof ParleyError && error.retry.kind === 'later' ? error.retry : undefined;
  return clampRemote(advice?.afterMs, { min: 0, max: longestRetryMs, fallback: 0 });
}
