import type { Authority } from '#contracts/outcome.ts';
import { coordinatorItself, type DelegationRefusal, type TaskLimits } from '#contracts/task.ts';
import { defineTool, type Tool, type ToolOutput, type ToolRun } from '#contracts/tool.ts';
import type { AgentSettings } from '../config/config.ts';
import { suggestName } from '../config/suggestion.ts';
import type { Hooks } from '../hooks/hooks.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { oneLine } from '../store/base/one-line.ts';
import { delegate } from '../store/delegation/delegate.ts';
import { graphProblem } from '../store/tasks/graph.ts';
import { type DelegateRequest, delegateInputSchema, repairDelegateInput } from './delegate-input.ts';
import { askSpawningHook } from './spawning-hook.ts';
import { childRole, spawnableAgents } from './tool-policy.ts';

export type DelegateToolDeps = {
  readonly store: Store;
  readonly limits: TaskLimits;
  /** Least trusted authority whose runs may delegate. */
  readonly authority: Authority;
  readonly agents: readonly AgentSettings[];
  readonly hooks?: Hooks | undefined;
  start(effects: Effects): void;
};

/** Most dependencies of one graph: each is a result that somebody reads. */
const maxDependencies = 2_000;

/**
 * Creates the tool that makes a task into a graph of subtasks for agents. Everything is checked before anything is
 * stored; the graph and its first dispatches are one transaction under the call's id, so a call repeated after a crash
 * re-attaches to the task it has made.
 */
export function createDelegateTool(deps: DelegateToolDeps, run: ToolRun): Tool {
  const { agents, limits } = deps;
  const own = agents.find(({ id }) => id === run.agentId);
  const allowed = own ? spawnableAgents(own, agents) : [];
  return defineTool<DelegateRequest>({
    name: 'delegate',
    description: describe(
      agents.filter(({ id }) => allowed.includes(id)),
      run.agentId,
    ),
    inputSchema: delegateInputSchema,
    parallelSafe: false,
    replay: 'durable',
    authority: deps.authority,
    prepareArguments: repairDelegateInput,
    execute: async ({ title, subtasks }, { callId }) => {
      const problem = findProblem(subtasks, allowed);
      if (problem) return answer({ status: 'refused', ...problem });
      const role = childRole({ parent: run.role, profile: 'main', maxSpawnDepth: limits.depth });
      const denied = await askAboutEach(deps.hooks, run, { callId, depth: role.depth, subtasks });
      if (denied !== undefined) return answer({ status: 'refused', reason: 'hook', note: denied });
      const { sessionKey: laneKey, runId, epoch } = run;
      const delegated = await deps.store.write(delegate, {
        ...{ laneKey, runId, epoch, callId, title, role, limits },
        subtasks: subtasks.map(({ timeoutSeconds, expected, ...subtask }) => ({
          ...subtask,
          ...(expected !== undefined && { expected }),
          ...(timeoutSeconds !== undefined && { timeoutMs: timeoutSeconds * 1000 }),
        })),
      });
      if (delegated.kind === 'refused') {
        const { reason, limit } = delegated;
        return answer({ status: 'refused', reason, limit, note: adviceFor(reason, limit) });
      }
      deps.start(delegated.effects);
      const isReady = ({ dependsOn }: DelegateRequest['subtasks'][number]) => dependsOn.length === 0;
      return answer({
        status: 'accepted',
        task: delegated.taskId,
        dispatched: subtasks.filter(isReady).map(({ id }) => id),
        waiting: subtasks.filter((subtask) => !isReady(subtask)).map(({ id }) => id),
        note: 'Now end your turn with one short sentence, or with NO_REPLY. You get one turn to write the answer when all subtasks have ended: until then do not wait, poll or do their work.',
      });
    },
  });
}

/** Says when to delegate, how to decompose, and to whom: a nested coordinator has no other list of agents. */
function describe(reachable: readonly AgentSettings[], ownId: string): string {
  const roster = reachable.map((agent) => describeAgent(agent, ownId)).join('\n') || '(none)';
  return `Break a task into a graph of subtasks and give them to agents that work at the same time. Each starts as soon as everything it depends on has ended, and reads those results. When all have ended, you get one turn to write the answer.
When:
- Do it yourself if it takes a few steps, or if each step needs the one before.
- Start one sub-agent for one self-contained part, if you have sessions_spawn.
- Delegate if several parts don't need each other, or if other agents are better at them.
How:
- As few subtasks as possible, as parallel as possible: a subtask depends only on those whose results it reads.
- Write instructions that need nothing else: goal, facts, names of files, form of the result. Its agent sees neither this conversation nor the other subtasks.
- Results go to those that depend on them: say what to do with them, don't repeat them.
- Choose agents by what they are good at, and give their ids. ${coordinatorItself} keeps a subtask: you do it yourself, in this conversation, one at a time.
- No subtask for the answer: you write it from the results.
Agents:
${roster}`;
}

function describeAgent({ id, specialty, capabilities = [] }: AgentSettings, ownId: string): string {
  const facts = [
    ...(id === ownId ? ['yourself, as a sub-agent that only knows its instructions'] : []),
    ...(specialty === undefined ? [] : [oneLine(specialty, 200)]),
    ...(capabilities.length === 0 ? [] : [`can: ${capabilities.map((each) => oneLine(each)).join(', ')}`]),
  ];
  return facts.length === 0 ? `- ${id}` : `- ${id}: ${facts.join('; ')}`;
}

type Problem = {
  readonly reason: 'not_a_graph' | 'too_many_dependencies' | 'agent_not_allowed';
  readonly note: string;
};

function findProblem(subtasks: DelegateRequest['subtasks'], allowed: readonly string[]): Problem | undefined {
  const problem = graphProblem(subtasks);
  if (problem !== undefined) return { reason: 'not_a_graph', note: problem };
  const edges = subtasks.reduce((sum, { dependsOn }) => sum + dependsOn.length, 0);
  if (edges > maxDependencies)
    return {
      reason: 'too_many_dependencies',
      note: `These are ${edges} dependencies, and ${maxDependencies} is the maximum. Let a subtask depend only on those whose results it reads.`,
    };
  const stray = subtasks.find(({ agent }) => agent !== coordinatorItself && !allowed.includes(agent));
  if (!stray) return undefined;
  const known = [coordinatorItself, ...allowed];
  const meant = suggestName(stray.agent, known);
  const hint = meant === undefined ? '' : ` Did you mean "${meant}"?`;
  return {
    reason: 'agent_not_allowed',
    note: `"${stray.id}" is for "${stray.agent}", which isn't one of the agents you may ask: ${known.join(', ')}.${hint}`,
  };
}

/** Asks the hook about each peer. One refusal refuses the graph, so that nothing is half dispatched. */
async function askAboutEach(
  hooks: Hooks | undefined,
  run: ToolRun,
  {
    subtasks,
    ...call
  }: { readonly callId: string; readonly depth: number } & Pick<DelegateRequest, 'subtasks'>,
): Promise<string | undefined> {
  for (const { id, agent: agentId, instructions: task } of subtasks) {
    if (agentId === coordinatorItself) continue;
    const denied = await askSpawningHook(hooks, run, { ...call, agentId, task });
    if (denied !== undefined) return `${id}: ${denied}`;
  }
  return undefined;
}

function answer(value: Record<string, unknown>): ToolOutput {
  return { text: JSON.stringify(value) };
}

/** Names the limit and a way forward that doesn't run into it again. */
function adviceFor(reason: DelegationRefusal, limit: number): string {
  switch (reason) {
    case 'too_deep':
      return `Sub-agents may be nested ${limit} deep, and you are at the deepest level. Do this task yourself.`;
    case 'too_many_subtasks':
      return limit === 0
        ? 'This request has used all subtasks it may have. Do the rest yourself.'
        : `This request may have ${limit} more ${limit === 1 ? 'subtask' : 'subtasks'}. Combine some, or do part of it yourself.`;
    case 'tree_out_of_time':
      return `This request's agents have used up their ${limit} seconds in total. Answer with what you have.`;
    case 'task_is_open':
      return 'This task has been delegated already, and this turn is part of it. While subtasks are open, end the turn with NO_REPLY; otherwise answer with what you have.';
    default:
      return reason satisfies never;
  }
}
