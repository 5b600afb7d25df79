/** Starts the gateway, or serves its page at the same address until the blocker is gone and the start succeeds. */
import { systemClock } from '#channel-kit/system-clock.ts';
import { type Gateway, startGateway } from '../gateway.ts';
import { configuredModel } from '../models/models.ts';
import type { GatewayOptions } from '../roles/stage-deps.ts';
import { blockerFrom, findBlocker, type StartBlocker } from './start-blocker.ts';
import {
  openWaitingGateway,
  openWaitingWorker,
  type WaitingGateway,
  waitingText,
} from './waiting-gateway.ts';

/** A gateway that may still be waiting to start. */
export type RetryingGateway = Gateway & {
  /** Returns why it hasn't started yet; undefined once it has. */
  waiting(): string | undefined;
  /** Resolves once it is running. */
  readonly started: Promise<void>;
};

const firstWaitMs = 500;
const longestWaitMs = 5_000;

/** Starts the gateway, retrying while waiting can help. Otherwise throws what `startGateway` throws. */
export async function startWithRetry(options: GatewayOptions): Promise<RetryingGateway> {
  try {
    const gateway = await startGateway(options);
    return { ...gateway, waiting: () => undefined, started: Promise.resolve() };
  } catch (error) {
    const blocker = blockerFrom(error, options.config.dataDir);
    if (blocker === undefined) throw error;
    return waitBefore(blocker, options);
  }
}

async function waitBefore(first: StartBlocker, options: GatewayOptions): Promise<RetryingGateway> {
  const { config, log, clock = systemClock } = options;
  let blocker: StartBlocker | undefined = first;
  let gateway: Gateway | undefined;
  /** The configuration as reloaded during the wait, if it was. */
  let latest: Parameters<Gateway['apply']> | undefined;
  const stopping = new AbortController();
  const started = Promise.withResolvers<void>();
  const broken = Promise.withResolvers<void>();
  const waitingGateway = await openReopenable({ ...options, clock, blocker: () => blocker ?? first });
  log.error({ reason: first.reason }, 'start.postponed');

  const waiting = (async () => {
    try {
      gateway = await untilStarted({
        ...{ options, clock, waitingGateway, signal: stopping.signal },
        onBlocker: (found) => {
          if (found.reason !== blocker?.reason) log.error({ reason: found.reason }, 'start.postponed');
          blocker = found;
        },
      });
      if (gateway === undefined) return;
      if (latest !== undefined) await gateway.apply(...latest);
      blocker = undefined;
      log.info({}, 'start.resumed');
      started.resolve();
      void gateway.broken.then(broken.resolve);
    } catch (error) {
      log.error({ error }, 'start.failed');
      broken.resolve();
    }
  })();
  return {
    ...(config.role !== 'worker' && {
      url: waitingGateway.url,
      signInLink: () => gateway?.signInLink?.() ?? '',
    }),
    healthUrl: waitingGateway.url,
    channels: () => gateway?.channels() ?? [],
    model: configuredModel(config, { clock, log }),
    plugins: () => gateway?.plugins() ?? [],
    settled: Promise.resolve(),
    broken: broken.promise,
    started: started.promise,
    waiting: () => blocker && waitingText(blocker),
    apply: async (...settings) => {
      latest = settings;
      return (await gateway?.apply(...settings)) ?? [];
    },
    stop: async () => {
      stopping.abort();
      await waiting;
      await waitingGateway.close();
      await gateway?.stop();
    },
  };
}

type ReopenableGateway = WaitingGateway & { reopen(): Promise<void> };

/** Opens the waiting page or health server, which can close for an attempt and reopen on the same port. */
async function openReopenable(options: Parameters<typeof openWaitingGateway>[0]): Promise<ReopenableGateway> {
  const openOne = options.config.role === 'worker' ? openWaitingWorker : openWaitingGateway;
  let open: WaitingGateway | undefined = await openOne(options);
  const { url } = open;
  const config = movedTo(url, options.config);
  const close = async () => {
    const closing = open;
    open = undefined;
    await closing?.close();
  };
  return {
    url,
    releaseStore: async () => open?.releaseStore(),
    close,
    reopen: async () => {
      await close();
      open = await openOne({ ...options, config });
    },
  };
}

type StartAttempts = {
  readonly options: GatewayOptions;
  readonly clock: Required<GatewayOptions>['clock'];
  readonly waitingGateway: ReopenableGateway;
  readonly signal: AbortSignal;
  readonly onBlocker: (found: StartBlocker) => void;
};

/** Retries until the gateway starts; undefined if stopped first. Throws faults that waiting can't fix. */
async function untilStarted(attempts: StartAttempts): Promise<Gateway | undefined> {
  const { options, clock, waitingGateway, signal, onBlocker } = attempts;
  const config = movedTo(waitingGateway.url, options.config);
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMs * 2, longestWaitMs)) {
    await clock.wait(waitMs, signal);
    if (signal.aborted) return undefined;
    const found = await findBlocker(options.config);
    if (found !== undefined) {
      onBlocker(found);
      continue;
    }
    try {
      await waitingGateway.releaseStore();
      return await startGateway({
        ...options,
        config,
        beforeListen: waitingGateway.close,
      });
    } catch (error) {
      const blocker = blockerFrom(error, options.config.dataDir);
      if (blocker === undefined) throw error;
      onBlocker(blocker);
      await waitingGateway.reopen();
    }
  }
}

/** Returns the configuration with the port on which the gateway waited. */
function movedTo(url: string, config: GatewayOptions['config']): GatewayOptions['config'] {
  const port = Number(new URL(url).port || 80);
  return config.role === 'worker' ? { ...config, health: { ...config.health, port } } : { ...config, port };
}
