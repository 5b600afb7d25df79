import { type Model, startModel } from './model.ts';
import type { Network, NetworkName } from './network.ts';
import { startDiscord } from './networks/discord.ts';
import { startSignal } from './networks/signal.ts';
import { startTelegram } from './networks/telegram.ts';

/** The model and one or more networks, all in this process and on one clock. */
export type Platforms = {
  readonly model: Model;
  readonly networks: AtLeastOne<Network>;
  /** Environment through which a bot finds them. */
  readonly environment: Readonly<Record<string, string>>;
  /** Sets the address that the bot listens on. */
  meet(url: string): void;
  close(): Promise<void>;
};

export type AtLeastOne<T> = readonly [T, ...T[]];

const start: Readonly<Record<NetworkName, () => Promise<Network>>> = {
  telegram: startTelegram,
  discord: startDiscord,
  signal: startSignal,
};

export async function startPlatforms(...[first, ...others]: AtLeastOne<NetworkName>): Promise<Platforms> {
  const model = await startModel();
  const networks: AtLeastOne<Network> = [
    await start[first](),
    ...(await Promise.all(others.map((name) => start[name]()))),
  ];
  return platformsOf(model, networks);
}

export function platformsOf(model: Model, networks: AtLeastOne<Network>): Platforms {
  return {
    model,
    networks,
    environment: Object.assign({}, model.environment, ...networks.map(({ environment }) => environment)),
    meet: (url) => {
      for (const network of networks) network.meets(url);
    },
    close: async () => {
      await Promise.all([model.close(), ...networks.map((network) => network.close())]);
    },
  };
}
