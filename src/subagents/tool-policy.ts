/**
 * Decides which tools a run may use. A sub-agent's role, stored when it was spawned, comes first; its agent's lists
 * only narrow down what remains.
 */

import type { ChildRole } from '#contracts/child.ts';
import type { AgentType, Tool, ToolRun } from '#contracts/tool.ts';
import type { AgentSettings } from '../config/config.ts';
import { suggestName } from '../config/suggestion.ts';

/** Tools that no sub-agent has: they exceed its task, or wait for what its parent is waiting for. */
export const deniedToChildren: readonly string[] = [
  'gateway',
  'agents_list',
  'session_status',
  'sessions_send',
];

/** Tools that are only useful to a sub-agent that may have children of its own. */
export const deniedToTheDeepest: readonly string[] = [
  'sessions_list',
  'sessions_history',
  'sessions_spawn',
  'subagents',
  'delegate',
  'tasks',
];

/** The tools of the `task` profile: they read and change nothing. */
export const taskTools: readonly string[] = [
  ...['read', 'glob', 'grep', 'list', 'view', 'code_search'],
  ...['web_fetch', 'web_search'],
];

/** Types of a run without tools. */
const withoutTools: ReadonlySet<string> = new Set<AgentType>(['summarizer', 'title']);

export type RoleRequest = {
  /** The spawning run's role; absent if a person's message started that run. */
  readonly parent: ChildRole | undefined;
  readonly profile: 'main' | 'task';
  /** Deepest level that may be spawned at all. */
  readonly maxSpawnDepth: number;
};

/** Returns the role of a sub-agent, which never exceeds its parent's, whatever was requested. */
export function childRole({ parent, profile, maxSpawnDepth }: RoleRequest): ChildRole {
  const depth = (parent?.depth ?? 0) + 1;
  const own = depth >= maxSpawnDepth ? [...deniedToChildren, ...deniedToTheDeepest] : deniedToChildren;
  return {
    depth,
    profile: parent?.profile === 'task' ? 'task' : profile,
    deniedTools: [...new Set([...(parent?.deniedTools ?? []), ...own])],
  };
}

/** Says whether a run may use the tool. `role` is absent in a run that wasn't spawned. */
export function mayUseTool(
  name: string,
  role: ChildRole | undefined,
  { allow, deny }: AgentSettings['tools'],
): boolean {
  if (deny.includes(name) || (allow !== undefined && !allow.includes(name))) return false;
  if (role === undefined) return true;
  return !role.deniedTools.includes(name) && (role.profile !== 'task' || taskTools.includes(name));
}

/** Returns those of `tools` that the run may use, by its role and its agent's lists. */
export function permittedTools(
  tools: readonly Tool[],
  { role, type = 'main' }: Pick<ToolRun, 'role' | 'type'>,
  agent: Pick<AgentSettings, 'tools'>,
): readonly Tool[] {
  if (withoutTools.has(type)) return [];
  return tools.filter(({ name }) => mayUseTool(name, role, agent.tools));
}

type UnknownTool = {
  readonly agent: string;
  readonly tool: string;
  /** The tool that was probably meant. */
  readonly meant?: string;
};

/** Finds tools that the agents' lists name but nothing provides: a misspelled name denies nothing. */
export function unknownTools(
  agents: readonly Pick<AgentSettings, 'id' | 'tools'>[],
  known: readonly string[],
): readonly UnknownTool[] {
  return agents.flatMap(({ id, tools: { allow = [], deny } }) =>
    [...new Set([...allow, ...deny])].flatMap((tool) => {
      if (known.includes(tool)) return [];
      const meant = suggestName(tool, known);
      return [{ agent: id, tool, ...(meant !== undefined && { meant }) }];
    }),
  );
}

/** Returns the ids of the agents that `agent` may start as sub-agents, in configuration order. */
export function spawnableAgents(
  agent: Pick<AgentSettings, 'id' | 'subagents'>,
  agents: readonly Pick<AgentSettings, 'id'>[],
): readonly string[] {
  const { allowAgents = [agent.id] } = agent.subagents;
  const isAll = allowAgents.includes('*');
  return agents.map(({ id }) => id).filter((id) => isAll || allowAgents.includes(id));
}
