import { z } from 'zod';
import { agentTypeOf, spawnableTypes } from '#contracts/agent-type.ts';
import type { SpawnLimits, SpawnRefusal } from '#contracts/child.ts';
import { agentId, type SessionKey } from '#contracts/ids.ts';
import { isLaneClass } from '#contracts/lane-class.ts';
import type { Authority } from '#contracts/outcome.ts';
import type { Probe } from '#contracts/probe.ts';
import { defineTool, type ParkRequest, type Tool, type ToolOutput, type ToolRun } from '#contracts/tool.ts';
import type { AgentSettings } from '../config/config.ts';
import type { Models } from '../models/models.ts';
import { formatSessionKey } from '../sessions/session-key.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import type { LaneSpec } from '../store/base/lane-spec.ts';
import { childIdOf } from '../store/children/child-rows.ts';
import { spawnChild } from '../store/children/spawn-child.ts';
import { childRole, spawnableAgents } from './tool-policy.ts';

export type SpawnToolDeps = {
  readonly store: Store;
  readonly limits: SpawnLimits;
  /** Least trusted authority whose runs may start sub-agents. */
  readonly authority: Authority;
  readonly agents: readonly AgentSettings[];
  readonly models: Pick<Models, 'names'>;
  readonly probe: Probe;
  start(effects: Effects): void;
};

const inputSchema = z.object({
  task: z
    .string()
    .trim()
    .min(1)
    .max(32_000)
    .describe('The whole task with everything needed for it: unless forked, it sees nothing else.'),
  label: z.string().trim().min(1).max(80).optional().describe('A short name for the person to read.'),
  agentId: z.string().optional().describe('Absent: you yourself.'),
  model: z.string().max(200).optional().describe("Its model. Absent: its agent's own."),
  profile: z
    .enum(spawnableTypes)
    .default('main')
    .transform(agentTypeOf)
    .describe('main (also coder): all tools; task: read-only research.'),
  context: z
    .enum(['isolated', 'fork'])
    .default('isolated')
    .describe('fork: it begins with this conversation up to now.'),
  wait: z
    .boolean()
    .default(false)
    .describe(
      'true: the result is the answer to this call. false: you go on, and are told when it has ended.',
    ),
  timeoutSeconds: z.int().min(1).max(86_400).optional().describe('It is stopped after this time.'),
});

/**
 * Gives a task to a sub-agent. One transaction under the call's id, so a call that is repeated after a crash
 * re-attaches to the sub-agent it has spawned; a waiting one is answered by the step that ends it.
 */
export function createSpawnTool(deps: SpawnToolDeps, run: ToolRun): Tool {
  const { agents, limits } = deps;
  const own = agents.find(({ id }) => id === run.agentId);
  const allowed = own ? spawnableAgents(own, agents) : [];
  const names = deps.models.names();
  return defineTool<z.infer<typeof inputSchema>>({
    name: 'sessions_spawn',
    description:
      'Start a sub-agent with a task of its own. It works beside you and its result comes back to you, not to the person. ' +
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
      const { sessionKey: parent, sessionId, epoch, runId } = run;
      const id = childIdOf({ sessionId, runId, callId });
      const spawned = await deps.store.write(spawnChild, {
        ...{ laneKey: parent, epoch, runId, callId },
        ...rest,
        agentId: agent,
        mode: wait ? 'wait' : 'announce',
        role,
        limits,
        lane: childLane({ id, agentId: agent, depth: role.depth, parent }),
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
        note: 'You are told here when it has ended; do not wait or poll for it.',
      });
    },
  });
}

/** A child's lane: what its parent tells it while it works reaches it at its next step. */
function childLane(child: {
  readonly id: string;
  readonly agentId: string;
  readonly depth: number;
  readonly parent: SessionKey;
}): LaneSpec {
  const { id, agentId: agent, depth, parent } = child;
  const name = `sub-${depth}`;
  return {
    key: formatSessionKey({ kind: 'sub-agent', agent: agentId(agent), depth, child: id, parent }),
    // Deeper than the last class is refused by the step.
    class: isLaneClass(name) ? name : 'sub-5',
    agentId: agent,
    chatKind: 'dm',
    settings: { mode: 'steer', debounceMs: 0, quietMs: 0, cap: 20, drop: 'summarize' },
    newSessionId: id,
  };
}

function answer(value: Record<string, unknown>): ToolOutput {
  return { text: JSON.stringify(value) };
}

/** `names`: those that may be given in place of the refused one. */
function refusal(reason: SpawnRefusal, limit: number, names: readonly string[] = []): ToolOutput {
  return answer({ status: 'refused', reason, limit, note: adviceFor(reason, limit, names.join(', ')) });
}

/** Names the limit and a way on that does not lead into it again. */
function adviceFor(reason: SpawnRefusal, limit: number, names: string): string {
  switch (reason) {
    case 'too_deep':
      return `Sub-agents may be ${limit} deep and you are at the deepest level. Do this task yourself.`;
    case 'agent_not_allowed':
      return `You may start only these agents: ${names || 'none'}.`;
    case 'model_not_known':
      return `There are only these models: ${names}. Leave it out for the agent's own.`;
    case 'too_many_children':
      return `You have ${limit} sub-agents at work, the most you may have. Wait until one has ended, or do the task yourself.`;
    case 'tree_full':
      return `${limit} sub-agents are at work for this request, the most there may be. Wait until some have ended, or do the task yourself.`;
    case 'tree_exhausted':
      return `This request has had ${limit} sub-agents, the most there may be in all. Do the rest yourself.`;
    case 'tree_out_of_time':
      return `Sub-agents of this request had ${limit} seconds in all, which are over. Answer with what you have.`;
    default:
      return reason satisfies never;
  }
}
