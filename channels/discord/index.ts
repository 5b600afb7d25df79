import type { ChannelDefinition } from '#contracts/channel.ts';
import { DiscordAdapter } from './adapter.ts';
import { capabilities } from './capabilities.ts';
import { type DiscordConfig, discordConfig } from './config.ts';
import { discord } from './ids.ts';
import { tools } from './tools.ts';

export const channel: ChannelDefinition<DiscordConfig> = {
  id: discord,
  capabilities,
  configSchema: discordConfig,
  tools,
  create: (config, deps) => new DiscordAdapter(config, deps),
};
