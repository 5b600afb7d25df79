import { z } from 'zod';
import type { SpawnLimits } from '#contracts/child.ts';
import type { PluginDefinition } from '#contracts/plugin.ts';
import type { Config } from '../config/config.ts';
import { agentRoster } from './agent-roster.ts';
import { createAgentsListTool } from './agents-list-tool.ts';
import { createDelegateTool } from './delegate-tool.ts';
import { createSpawnTool, type SpawnToolDeps } from './spawn-tool.ts';
import { createSubagentsTool } from './subagents-tool.ts';
import { createTasksTool } from './tasks-tool.ts';

/** Provides the tools for sub-agents, like any plugin does. */
export function subagentsPlugin(
  deps: Pick<SpawnToolDeps, 'store' | 'models' | 'probe' | 'start' | 'hooks'> & { readonly config: Config },
): PluginDefinition {
  const { config, store, models, probe, start, hooks } = deps;
  const { agents, subagents } = config;
  const { authority } = subagents;
  const limits = spawnLimits(subagents);
  const taskLimits = { depth: limits.depth, nodes: subagents.tree.graphNodes, treeMs: limits.treeMs };
  const roster = agentRoster(config);
  return {
    id: 'subagents',
    configSchema: z.unknown(),
    setup: ({ tools }) => {
      tools.register('sessions_spawn', (run) =>
        createSpawnTool({ store, models, probe, start, hooks, agents, limits, authority }, run),
      );
      tools.register('delegate', (run) =>
        createDelegateTool({ store, start, hooks, agents, limits: taskLimits, authority }, run),
      );
      tools.register('tasks', (run) => createTasksTool(deps, run));
      tools.register('subagents', (run) => createSubagentsTool(deps, run));
      tools.register('agents_list', (run) => createAgentsListTool(roster, run));
      return () => undefined;
    },
  };
}

function spawnLimits({ maxSpawnDepth, maxChildrenPerAgent, tree }: Config['subagents']): SpawnLimits {
  const { nodes, lifetime, seconds } = tree;
  return { depth: maxSpawnDepth, children: maxChildrenPerAgent, nodes, lifetime, treeMs: seconds * 1000 };
}
