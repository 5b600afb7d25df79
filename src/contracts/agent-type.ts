/**
 * Kinds of work that agents do: `main` has all tools of its agent, `task` the read-only tools, `summarizer` and
 * `title` have none.
 */
export type AgentType = 'main' | 'task' | 'summarizer' | 'title';

/** Types that a sub-agent may be spawned as. `coder` is another name of `main`. */
export const spawnableTypes = ['main', 'coder', 'task'] as const;

/** Returns the type that a name stands for. */
export function agentTypeOf(name: (typeof spawnableTypes)[number]): 'main' | 'task' {
  return name === 'task' ? 'task' : 'main';
}
