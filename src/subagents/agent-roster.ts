import { z } from 'zod';
import type { Config } from '../config/config.ts';
import { spawnableAgents } from './tool-policy.ts';

/** An agent as others see it when they choose whom to ask. */
export const rosterEntrySchema = z.object({
  id: z.string(),
  name: z.string(),
  specialty: z.string().exactOptional().describe('What it is good at'),
  capabilities: z.array(z.string()).readonly().describe('What it can do'),
  isDefault: z.boolean().describe('Answers where no binding says otherwise'),
  model: z.string().describe('Model that answers, unless a conversation has its own'),
  askedBy: z
    .array(z.string())
    .readonly()
    .describe('Ids of the agents that may start it as a sub-agent or give it a subtask'),
});

/** One agent of the list. */
export type RosterEntry = Readonly<z.output<typeof rosterEntrySchema>>;

/** Lists the configured agents. */
export function agentRoster(
  config: Pick<Config, 'agents' | 'model' | 'defaultAgent'>,
): readonly RosterEntry[] {
  const { agents, defaultAgent } = config;
  return agents.map(({ id, name, specialty, capabilities = [], model = config.model }) => ({
    ...{ id, name, ...(specialty !== undefined && { specialty }), capabilities },
    ...{ isDefault: id === defaultAgent, model },
    askedBy: agents.filter((agent) => spawnableAgents(agent, agents).includes(id)).map((agent) => agent.id),
  }));
}
