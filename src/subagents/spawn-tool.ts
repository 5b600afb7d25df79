import { z } from 'zod';
import type { SpawnLimits, SpawnRefusal } from '#contracts/child.ts';
import type { Authority } from '#contracts/outcome.ts';
import type { Probe } from '#contracts/probe.ts';
import {
  agentTypeOf,
  defineTool,
  type ParkRequest,
  spawnableTypes,
  type Tool,
  type ToolOutput,
  type ToolRun,
} from '#contracts/tool.ts';
import type { AgentSettings } from '../config/config.ts';
import type { Hooks } from '../hooks/hooks.ts';
import type { Models } from '../models/models.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { childIdOf, childLane } from '../store/children/child.ts';
import { spawnChild } from '../store/children/spawn-child.ts';
import { askSpawningHook } from './spawning-hook.ts';
import { childRole, spawnableAgents } from './tool-policy.ts';

export type SpawnToolDeps = {
  readonly store: Store;
  readonly limits: SpawnLimits;
  /** Least trusted authority whose runs may start sub-agents. */
  readonly authority: Authority;
  readonly agents: readonly AgentSettings[];
  readonly models: Pick<Models, 'names'>;
  readonly probe: Probe;
  readonly hooks?: Hooks | undefined;
  start(effects: Effects): void;
};

const inputSchema = z.object({
  task: z
    .string()
    .trim()
    .min(1)
    .max(32_000)
    .describe('The complete task with everything it needs: unless forked, the sub-agent sees nothing else.'),
  label: z.string().trim().min(1).max(80).optional().describe('A short name for the person to read.'),
  agentId: z.string().optional().describe('The agent to start; by default yourself.'),
  model: z.string().max(200).optional().describe("Its model; by default its agent's own."),
  profile: z
    .enum(spawnableTypes)
    .default('main')
    .transform(agentTypeOf)
    .describe('main (also coder): all tools; task: read-only research.'),
  context: z
    .enum(['isolated', 'fork'])
    .default('isolated')
    .describe('fork: it starts with this conversation so far.'),
  wait: z
    .boolean()
    .default(false)
    .describe('true: this call returns its result. false: you continue, and are notified when it has ended.'),
  timeoutSeconds: z.int().min(1).max(86_400).optional().describe('It is stopped after this time.'),
});

/**
 * Creates the tool that gives a task to a sub-agent. The spawn is one transaction under the call's id, so a call
 * repeated after a crash re-attaches to the sub-agent it has spawned. A waiting call is answered by the step that ends
 * the sub-agent.
 */
export function createSpawnTool(deps: SpawnToolDeps, run: ToolRun): Tool {
  const { agents, limits } = deps;
  const own = agents.find(({ id }) => id === run.agentId);
  const allowed = own ? spawnableAgents(own, agents) : [];
  const names = deps.models.names();
  return defineTool<z.infer<typeof inputSchema>>({
    name: 'sessions_spawn',
    description:
      'Start a sub-agent with its own task. It works alongside you, and its result goes to you, not to the person. ' +
      `Never poll for it or wait in a loop. Agents you may start: ${allowed.join(', ') || 'none'}. Models: ${names.join(', ')}.`,
    inputSchema,
    parallelSafe: true,
    replay: 'durable',
    authority: deps.authority,
    execute: async (
      { wait, agentId: agent = run.agentId, profile, timeoutSeconds, label, model, ...rest },
      { callId },
    ) => {
      if (!allowed.includes(agent)) return refusal('agent_not_allowed', allowed.length, allowed);
      if (model !== undefined && !names.includes(model))
        return refusal('model_not_known', names.length, names);
      const role = childRole({ parent: run.role, profile, maxSpawnDepth: limits.depth });
      const denied = await askSpawningHook(deps.hooks, run, {
        callId,
        agentId: agent,
        task: rest.task,
        depth: role.depth,
      });
      if (denied !== undefined) return answer({ status: 'refused', reason: 'hook', note: denied });
      const { sessionKey: parent, sessionId, epoch, runId } = run;
      const id = childIdOf({ sessionId, runId, callId });
      const spawned = await deps.store.write(spawnChild, {
        ...{ laneKey: parent, epoch, runId, callId },
        ...rest,
        agentId: agent,
        mode: wait ? 'wait' : 'announce',
        role,
        limits,
        lane: childLane({ id, agent, depth: role.depth, parent }),
        ...(label !== undefined && { label }),
        ...(model !== undefined && { model }),
        ...(timeoutSeconds !== undefined && { timeoutMs: timeoutSeconds * 1000 }),
      });
      if (spawned.kind === 'refused') return refusal(spawned.reason, spawned.limit);
      if (spawned.kind === 'spawned') deps.probe.reach('child-reserved');
      deps.start(spawned.effects);
      const { child, runId: childRunId } = spawned;
      if (wait) return { parked: { reason: 'a sub-agent' } } satisfies ParkRequest;
      return answer({
        status: 'accepted',
        id: child.id,
        runId: childRunId,
        childSessionKey: child.laneKey,
        note: 'You will be notified here when it has ended; do not wait or poll for it.',
      });
    },
  });
}

function answer(value: Record<string, unknown>): ToolOutput {
  return { text: JSON.stringify(value) };
}

/** `names` are those that may be given instead of the refused one. */
function refusal(reason: SpawnRefusal, limit: number, names: readonly string[] = []): ToolOutput {
  return answer({ status: 'refused', reason, limit, note: adviceFor(reason, limit, names.join(', ')) });
}

/** Names the limit and a way forward that doesn't run into it again. */
function adviceFor(reason: SpawnRefusal, limit: number, names: string): string {
  switch (reason) {
    case 'too_deep':
      return `Sub-agents may be nested ${limit} deep, and you are at the deepest level. Do this task yourself.`;
    case 'agent_not_allowed':
      return `You may only start these agents: ${names || 'none'}.`;
    case 'model_not_known':
      return `Only these models exist: ${names}. Omit the model to use the agent's own.`;
    case 'too_many_children':
      return `You already have ${limit} sub-agents at work, the maximum. Wait until one has ended, or do the task yourself.`;
    case 'tree_full':
      return `${limit} sub-agents are already at work for this request, the maximum. Wait until some have ended, or do the task yourself.`;
    case 'tree_exhausted':
      return `This request has used all ${limit} sub-agents it may have in total. Do the rest yourself.`;
    case 'tree_out_of_time':
      return `This request's sub-agents have used up their ${limit} seconds in total. Answer with what you have.`;
    default:
      return reason satisfies never;
  }
}
