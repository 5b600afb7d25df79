import { z } from 'zod';
import { defineTool, type Tool, type ToolRun } from '#contracts/tool.ts';
import type { RosterEntry } from './agent-roster.ts';

const nothing = z.object({});

/** Creates the tool that lists the agents that the run's agent may ask. */
export function createAgentsListTool(roster: readonly RosterEntry[], run: ToolRun): Tool {
  return defineTool<z.infer<typeof nothing>>({
    name: 'agents_list',
    description:
      'List the agents that you may start with sessions_spawn or ask with delegate, and what they are good at.',
    inputSchema: nothing,
    parallelSafe: true,
    replay: 'safe',
    authority: 'guest',
    execute: async () => ({
      text: JSON.stringify(roster.filter(({ askedBy }) => askedBy.includes(run.agentId))),
    }),
  });
}
