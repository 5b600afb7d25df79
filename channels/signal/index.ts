import type { ChannelDefinition } from '#contracts/channel.ts';
import { SignalAdapter } from './adapter.ts';
import { capabilities } from './capabilities.ts';
import { type SignalConfig, signalConfig } from './config.ts';
import { signal } from './ids.ts';

export const channel: ChannelDefinition<SignalConfig> = {
  id: signal,
  capabilities,
  configSchema: signalConfig,
  create: (config, deps) => new SignalAdapter(config, deps),
};
