/** Names that programs may use for the default agent, whatever its id is. */
const namesOfDefault: ReadonlySet<string> = new Set(['main', 'coder']);

/** Finds an agent by id; `main` and `coder` mean the default agent if no agent has that id. */
export function findAgent<Agent extends { readonly id: string }>(
  agents: readonly Agent[],
  name: string | undefined,
  defaultId: string,
): Agent | undefined {
  const agentOf = (id: string) => agents.find((agent) => agent.id === id);
  if (name === undefined) return agentOf(defaultId);
  return agentOf(name) ?? (namesOfDefault.has(name) ? agentOf(defaultId) : undefined);
}
