/** The module that plugins import as `parley/plugin`. */
import { z } from 'zod';
import type { Disposer, PluginApi, PluginDefinition } from './plugin.ts';

export type { ChannelAdapter, ChannelDefinition, Intake } from './channel.ts';
export type { InboundEnvelope } from './envelope.ts';
export type { HookEvents, HookHandler, HookName } from './hook.ts';
export { accountId, channelId, conversationId, eventKey, messageId, peerId } from './ids.ts';
export type { LlmProvider } from './model.ts';
export type { Outbound, SendResult } from './outbound.ts';
export type { PluginCommand, PluginRequest, PluginResponse } from './plugin-parts.ts';
export type { StoreOp } from './plugin-store.ts';
export { defineTool, type Tool, type ToolContext, type ToolOutput, type ToolRun } from './tool.ts';
export type { PluginApi, PluginDefinition };
/** The schema library that Parley uses itself, so that a plugin needs no package of its own. */
export { z };

/** A plugin as its author writes it: without settings it needs no schema, and without anything to release no disposer. */
export type WrittenPlugin<Config> = Omit<PluginDefinition<Config>, 'configSchema' | 'setup'> & {
  readonly configSchema?: z.ZodType<Config>;
  setup(
    api: PluginApi,
    config: Config,
  ): Disposer | Promise<Disposer> | undefined | Promise<undefined> | void | Promise<void>;
};

/** Checks a plugin against its settings' type. Export the result as `plugin`. */
export function definePlugin<Config = Readonly<Record<string, never>>>(
  source: WrittenPlugin<Config>,
): PluginDefinition<Config> {
  return {
    ...source,
    configSchema: source.configSchema ?? (z.strictObject({}) as unknown as z.ZodType<Config>),
    setup: async (api, config) => (await source.setup(api, config)) ?? (() => undefined),
  };
}
