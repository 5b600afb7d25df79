import { z } from 'zod';
import { defineTool, type Tool, type ToolRun } from '#contracts/tool.ts';
import type { AgentSettings } from '../config/config.ts';
import { spawnableAgents } from './tool-policy.ts';

const nothing = z.object({});

/** Creates the tool that lists the agents that the run's agent may start as sub-agents. */
export function createAgentsListTool(agents: readonly AgentSettings[], run: ToolRun): Tool {
  return defineTool<z.infer<typeof nothing>>({
    name: 'agents_list',
    description: 'List the agents that you may start with sessions_spawn.',
    inputSchema: nothing,
    parallelSafe: true,
    replay: 'safe',
    authority: 'guest',
    execute: async () => {
      const own = agents.find(({ id }) => id === run.agentId);
      const allowed = own ? spawnableAgents(own, agents) : [];
      const shown = agents.filter(({ id }) => allowed.includes(id)).map(({ id, name }) => ({ id, name }));
      return { text: JSON.stringify(shown) };
    },
  });
}
