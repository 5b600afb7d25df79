import { loadConfig } from '../config/load-config.ts';
import type { CommandOutput } from './print.ts';

/** Lists the agents of the configuration. */
export async function listAgents(): Promise<CommandOutput> {
  const config = loadConfig();
  const agents = config.agents.map(({ id, name, model = config.model, workspace }) => ({
    ...{ id, name, isDefault: id === config.defaultAgent, model, workspace },
  }));
  const lines = agents.map(
    ({ id, name, isDefault, model, workspace }) =>
      `${id}  “${name}”  ${isDefault ? 'default, ' : ''}model ${model}  ${workspace}`,
  );
  return { result: agents, lines };
}
