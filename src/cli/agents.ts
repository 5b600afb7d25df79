import { loadConfig } from '../config/load-config.ts';
import type { ExitCode } from './exit-code.ts';
import { printResult } from './print.ts';

/** Lists the agents of the configuration. */
export async function runAgentsList({ asJson }: { readonly asJson: boolean }): Promise<ExitCode> {
  const config = loadConfig();
  const agents = config.agents.map(({ id, name, model = config.model, workspace }) => ({
    ...{ id, name, isDefault: id === config.defaultAgent, model, workspace },
  }));
  const lines = agents.map(
    ({ id, name, isDefault, model, workspace }) =>
      `${id}  “${name}”  ${isDefault ? 'default, ' : ''}model ${model}  ${workspace}`,
  );
  printResult({ asJson, result: agents, lines });
  return 0;
}
