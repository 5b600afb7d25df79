import type { ChannelDefinition } from '#contracts/channel.ts';
import { createTerminalAdapter } from './adapter.ts';
import { terminalCapabilities } from './capabilities.ts';
import { type TerminalConfig, terminalConfigSchema } from './config.ts';
import { terminalChannel } from './ids.ts';

export const channel: ChannelDefinition<TerminalConfig> = {
  id: terminalChannel,
  capabilities: terminalCapabilities,
  configSchema: terminalConfigSchema,
  create: (_config, deps) => createTerminalAdapter(deps),
};
