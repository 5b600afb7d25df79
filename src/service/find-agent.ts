/** Names that programs may give the default agent, whatever its id is. */
const namesOfDefault: ReadonlySet<string> = new Set(['main', 'coder']);

/** The agent of that id; `main` and `coder` stand for the default one where no agent is called that. */
export function findAgent<Agent extends { readonly id: string }>(
  agents: readonly Agent[],
  name: string | undefined,
  defaultId: string,
): Agent | undefined {
  const agentOf = (id: string) => agents.find((agent) => agent.id === id);
  if (name === undefined) return agentOf(defaultId);
  return agentOf(name) ?? (namesOfDefault.has(name) ? agentOf(defaultId) : undefined);
}
