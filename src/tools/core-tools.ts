import { z } from 'zod';
import type { ChannelTool } from '#contracts/channel-abilities.ts';
import type { AgentId } from '#contracts/ids.ts';
import type { PluginDefinition } from '#contracts/plugin.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { WorkspaceReader } from '#contracts/workspace-reader.ts';
import type { AgentSettings, Config } from '../config/config.ts';
import { mediaFolder } from '../config/media-folder.ts';
import { bytesOf } from '../config/units.ts';
import type { FitLargeImage } from '../media/fit-images.ts';
import { createByteBudget } from '../outbox/byte-budget.ts';
import { readLastRoute } from '../store/delivery/tool-send.ts';
import { mayUseTool } from '../subagents/tool-policy.ts';
import { createChannelTool } from './channel-tool.ts';
import { createGatewayTool, type GatewayDeps } from './gateway.ts';
import { createMessageTool, type MessageToolDeps } from './message.ts';
import type { OutgoingFilesDeps } from './outgoing-files.ts';
import { createSessionStatusTool, createSessionsHistoryTool, createSessionsListTool } from './sessions.ts';
import { createSessionsSendTool, type SessionsSendDeps } from './sessions-send.ts';
import { createSkillTool } from './skill.ts';
import { createViewTool } from './view.ts';

type FilesDeps = {
  readonly config: Pick<Config, 'dataDir' | 'media'>;
  /** Returns the workspace reader provided by a plugin, if there is one; call it once all plugins are set up. */
  workspaceReader(): WorkspaceReader | undefined;
  readonly agents: { settingsOf(id: AgentId): Pick<AgentSettings, 'tools'> };
};

/** Returns which files runs may send, and where these are copied to. */
export function outgoingFilesFor({ config, workspaceReader, agents }: FilesDeps): OutgoingFilesDeps {
  return {
    mediaDir: mediaFolder(config.dataDir),
    maxFileBytes: bytesOf(config.media.maxMb),
    copies: createByteBudget(bytesOf(config.media.maxUploadsMb)),
    // A run that may not read a file may not send it either.
    readerFor: ({ role, agentId }) =>
      mayUseTool('read', role, agents.settingsOf(agentId).tools) ? workspaceReader() : undefined,
  };
}

/** Provides the tools that every agent has, like any plugin does. */
export function corePlugin(
  deps: Pick<MessageToolDeps, 'toolSender' | 'shaper' | 'capabilitiesFor' | 'hooks'> &
    FilesDeps &
    SessionsSendDeps & {
      readonly gateway: GatewayDeps;
      readonly fitImage: FitLargeImage;
      /** The names of all tools that channels offer. */
      readonly channelTools: readonly string[];
      channelToolsFor(route: ReplyRoute): readonly ChannelTool[];
    },
): PluginDefinition {
  const { toolSender, shaper, capabilitiesFor, hooks, store, workspaceReader } = deps;
  const files = outgoingFilesFor(deps);
  const routeTo = (laneKey: string) => store.read(readLastRoute, { laneKey });
  return {
    id: 'core',
    configSchema: z.unknown(),
    setup: ({ tools, skills }) => {
      // A run that is only recorded has no one to send to.
      tools.register('message', (run) =>
        run.route
          ? createMessageTool({ toolSender, shaper, capabilitiesFor, hooks, ...files, routeTo }, run)
          : undefined,
      );
      for (const name of new Set(deps.channelTools))
        tools.register(name, (run) => {
          const { route } = run;
          const tool = route && deps.channelToolsFor(route).find((offered) => offered.name === name);
          return tool && createChannelTool({ toolSender, tool }, { ...run, route });
        });
      tools.register('view', () => {
        const reader = workspaceReader();
        return reader && createViewTool(reader, deps.fitImage);
      });
      tools.register('session_status', (run) => createSessionStatusTool(store, run));
      tools.register('sessions_list', (run) => createSessionsListTool(store, run));
      tools.register('sessions_history', (run) => createSessionsHistoryTool(store, run));
      tools.register('skill', (run) => run.skills && createSkillTool(skills, run.skills));
      tools.register('sessions_send', (run) => createSessionsSendTool(deps, run));
      const gateway = createGatewayTool(deps.gateway);
      tools.register(gateway.name, () => gateway);
      return () => undefined;
    },
  };
}
