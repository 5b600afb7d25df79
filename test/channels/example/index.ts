import type { ChannelDefinition } from '#contracts/channel.ts';
import { ExampleAdapter } from './adapter.ts';
import { exampleCapabilities } from './capabilities.ts';
import { type ExampleConfig, exampleConfigSchema } from './config.ts';
import { exampleChannel } from './ids.ts';

export const channel: ChannelDefinition<ExampleConfig> = {
  id: exampleChannel,
  capabilities: exampleCapabilities,
  configSchema: exampleConfigSchema,
  create: (config, deps) => new ExampleAdapter(config, deps),
};
