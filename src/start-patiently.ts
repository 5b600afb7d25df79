/**
 * Starts the gateway, or waits with its door open until what stands in the way is gone: then it goes on as
 * if it had been started in that moment, at the same address.
 */
import { systemClock } from '#channel-kit/system-clock.ts';
import type { GatewayOptions } from './base.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { configuredModel } from './models/configured-model.ts';
import { findObstacle, type Obstacle, obstacleIn } from './obstacle.ts';
import { openWaitingFront, openWaitingHealth, type WaitingFront, wordsFor } from './waiting-front.ts';

export type PatientGateway = Gateway & {
  /** Why it has not started yet; undefined once it has. */
  waiting(): string | undefined;
  /** Resolves once it runs. */
  readonly started: Promise<void>;
};

const firstWaitMs = 500;
const longestWaitMs = 5_000;

/** Throws what `startGateway` throws and waiting would not mend. */
export async function startPatiently(options: GatewayOptions): Promise<PatientGateway> {
  try {
    const gateway = await startGateway(options);
    return { ...gateway, waiting: () => undefined, started: Promise.resolve() };
  } catch (error) {
    const obstacle = obstacleIn(error, options.config.dataDir);
    if (obstacle === undefined) throw error;
    return waitBefore(obstacle, options);
  }
}

async function waitBefore(first: Obstacle, options: GatewayOptions): Promise<PatientGateway> {
  const { config, log, clock = systemClock } = options;
  let obstacle: Obstacle | undefined = first;
  let gateway: Gateway | undefined;
  const stopping = new AbortController();
  const started = Promise.withResolvers<void>();
  const broken = Promise.withResolvers<void>();
  const front = await openFront({ ...options, clock, obstacle: () => obstacle ?? first });
  log.error({ reason: first.reason }, 'start.waiting');

  const waiting = (async () => {
    try {
      gateway = await untilStarted({
        ...{ options, clock, front, signal: stopping.signal },
        onObstacle: (found) => {
          if (found.reason !== obstacle?.reason) log.error({ reason: found.reason }, 'start.waiting');
          obstacle = found;
        },
      });
      if (gateway === undefined) return;
      obstacle = undefined;
      log.info({}, 'start.went-on');
      started.resolve();
      void gateway.broken.then(broken.resolve);
    } catch (error) {
      log.error({ error }, 'start.failed');
      broken.resolve();
    }
  })();
  return {
    ...(config.role !== 'worker' && { url: front.url, signInLink: () => gateway?.signInLink?.() ?? '' }),
    healthUrl: front.url,
    channels: () => gateway?.channels() ?? [],
    model: configuredModel(config.model, clock),
    plugins: [],
    settled: Promise.resolve(),
    broken: broken.promise,
    started: started.promise,
    waiting: () => obstacle && wordsFor(obstacle),
    stop: async () => {
      stopping.abort();
      await waiting;
      await front.close();
      await gateway?.stop();
    },
  };
}

type Front = WaitingFront & { reopen(): Promise<void> };

/** The door while nothing runs behind it, which may close for a try and open again at the same place. */
async function openFront(options: Parameters<typeof openWaitingFront>[0]): Promise<Front> {
  const openOne = options.config.role === 'worker' ? openWaitingHealth : openWaitingFront;
  let open: WaitingFront | undefined = await openOne(options);
  const { url } = open;
  const config = movedTo(url, options.config);
  const close = async () => {
    const closing = open;
    open = undefined;
    await closing?.close();
  };
  return {
    url,
    letGo: async () => open?.letGo(),
    close,
    reopen: async () => {
      await close();
      open = await openOne({ ...options, config });
    },
  };
}

type Trying = {
  readonly options: GatewayOptions;
  readonly clock: Required<GatewayOptions>['clock'];
  readonly front: Front;
  readonly signal: AbortSignal;
  readonly onObstacle: (found: Obstacle) => void;
};

/** Tries again and again; undefined when it was stopped first. Throws what waiting does not mend. */
async function untilStarted(trying: Trying): Promise<Gateway | undefined> {
  const { options, clock, front, signal, onObstacle } = trying;
  const config = movedTo(front.url, options.config);
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMs * 2, longestWaitMs)) {
    await clock.wait(waitMs, signal);
    if (signal.aborted) return undefined;
    const found = await findObstacle(options.config);
    if (found !== undefined) {
      onObstacle(found);
      continue;
    }
    try {
      await front.letGo();
      return await startGateway({
        ...options,
        config,
        beforeListen: front.close,
      });
    } catch (error) {
      const obstacle = obstacleIn(error, options.config.dataDir);
      if (obstacle === undefined) throw error;
      onObstacle(obstacle);
      await front.reopen();
    }
  }
}

/** The start goes on at the address at which it waited. */
function movedTo(url: string, config: GatewayOptions['config']): GatewayOptions['config'] {
  const port = Number(new URL(url).port || 80);
  return config.role === 'worker' ? { ...config, health: { ...config.health, port } } : { ...config, port };
}
