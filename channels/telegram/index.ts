import type { ChannelDefinition } from '#contracts/channel.ts';
import { TelegramAdapter } from './adapter.ts';
import { capabilities } from './capabilities.ts';
import { type TelegramConfig, telegramConfig } from './config.ts';
import { telegram } from './ids.ts';
import { tools } from './tools.ts';

export const channel: ChannelDefinition<TelegramConfig> = {
  id: telegram,
  capabilities,
  configSchema: telegramConfig,
  tools,
  create: (config, deps) => new TelegramAdapter(config, deps),
};
