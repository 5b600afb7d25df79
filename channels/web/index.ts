import type { ChannelDefinition } from '#contracts/channel.ts';
import { createWebAdapter } from './adapter.ts';
import { webCapabilities } from './capabilities.ts';
import { type WebConfig, webConfigSchema } from './config.ts';
import { webChannel } from './ids.ts';

export const channel: ChannelDefinition<WebConfig> = {
  id: webChannel,
  capabilities: webCapabilities,
  configSchema: webConfigSchema,
  create: (_config, deps) => createWebAdapter(deps),
};
