import type { Clock } from '#contracts/clock.ts';
import type { ChannelHost } from '../channel-host/channel-host.ts';
import type { Store } from '../store/command.ts';
import { readSessions } from '../store/sessions/read-sessions.ts';
import { channelStatus } from './channel-status.ts';
import type { GatewayStatus, Readiness } from './gateway-status.ts';
import { createMetrics, type Metrics } from './metrics/metrics.ts';

export type GatewayHealthDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly version: string;
  readonly model: { readonly name: string; readonly isDemo: boolean };
  readonly channels: ChannelHost['states'];
  isRedisReady(): boolean;
  hasSpace(): boolean;
};

export type GatewayHealth = Metrics & {
  readiness(): Promise<Readiness>;
  status(): Promise<GatewayStatus>;
};

/** How the gateway is: what it lacks, and what runs. Counts its life from this call. */
export function gatewayHealth(deps: GatewayHealthDeps): GatewayHealth {
  const { store, clock, version, channels } = deps;
  const { name, isDemo } = deps.model;
  const startedAt = clock.now();
  return {
    ...createMetrics(deps),
    readiness: async () => ({
      missing: [
        ...((await isReadable(store)) ? [] : ['store']),
        ...(deps.isRedisReady() ? [] : ['redis']),
        ...(deps.hasSpace() ? [] : ['disk space']),
      ],
    }),
    status: async () => ({
      version,
      startedAt,
      model: { name, isDemo },
      channels: channels().map(channelStatus),
    }),
  };
}

async function isReadable(store: Store): Promise<boolean> {
  try {
    await store.read(readSessions, { limit: 1 });
    return true;
  } catch {
    // The log has the reason, from whoever needed the store.
    return false;
  }
}
