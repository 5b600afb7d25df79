/** The shape of the agents and of the limits of their sub-agents, with what other settings share. */
import { z } from 'zod';
import { reasoningLevels } from '#contracts/model.ts';

/** A number of things, at least one. */
export const count = (byDefault: number, max = 1_000_000) => z.int().min(1).max(max).default(byDefault);

/** A name that the owner gives: of an agent, an account, a person. */
export const identifier = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/i, 'use up to 64 letters, digits, - and _')
  .refine((value) => value !== 'agent', 'the name "agent" is reserved');

const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, "isn't a tool's name, for example web_fetch");

const dollars = z.number().min(0).max(1_000_000).exactOptional();

const agentBudgets = {
  run: dollars.describe('For answering one message.'),
  session: dollars.describe('For one conversation, until /new.'),
  tree: dollars.describe('For one message with everything its sub-agents do.'),
  person: dollars.describe('Per person and day.'),
};

/** Budgets at the top level, in dollars. */
export const budgetLimits = {
  ...agentBudgets,
  gateway: dollars.describe('For everybody together per day.'),
};

/** One agent, as written. */
export const agent = z.strictObject({
  id: identifier.describe('Its name in session keys, bindings and commands.'),
  name: z.string().min(1).max(100).exactOptional().describe('The name it calls itself; default: Parley.'),
  workspace: z
    .string()
    .min(1)
    .exactOptional()
    .describe(
      'Folder of its files, relative to the data folder. Default: workspace, or workspace-<id> for further agents. It must not contain any of Parley’s own files.',
    ),
  profile: z.string().exactOptional().describe('Text that precedes its instructions.'),
  model: z
    .string()
    .min(1)
    .max(200)
    .exactOptional()
    .describe('The model that answers for it; default: model at the top level.'),
  titleModel: z
    .string()
    .min(1)
    .max(200)
    .exactOptional()
    .describe('The model that writes the titles of its conversations.'),
  summaryModel: z
    .string()
    .min(1)
    .max(200)
    .exactOptional()
    .describe('The model that summarises its conversations.'),
  reasoning: z
    .enum(reasoningLevels)
    .default('off')
    .describe('How long its model thinks before it answers; /think changes it for a conversation.'),
  budgets: z
    .strictObject(agentBudgets)
    .exactOptional()
    .describe('Its own limits, in place of those of budgets at the top level.'),
  tools: z
    .strictObject({
      allow: z.array(toolName).exactOptional().describe('Only these tools; absent = all.'),
      deny: z.array(toolName).default([]).describe('Never these tools, even if allowed.'),
    })
    .prefault({})
    .describe('Tools of its runs. These lists can only take tools away.'),
  subagents: z
    .strictObject({
      allowAgents: z
        .array(z.union([identifier, z.literal('*')]))
        .exactOptional()
        .describe('Agents it may start as sub-agents; "*" = all. Default: only itself.'),
    })
    .prefault({}),
});

/** Limits of sub-agents, as written. */
export const subagents = z
  .strictObject({
    maxSpawnDepth: z
      .int()
      .min(1)
      .max(5)
      .default(1)
      .describe('Levels of sub-agents: with 2, a sub-agent may start its own.'),
    authority: z
      .enum(['owner', 'member', 'guest'])
      .default('guest')
      .describe(
        'Least trusted person whose messages may start sub-agents, which never have more rights than that person.',
      ),
    maxChildrenPerAgent: count(5, 100).describe('Sub-agents that one session may have at a time.'),
    tree: z
      .strictObject({
        nodes: count(20, 1000).describe('Sub-agents at a time …'),
        lifetime: count(200, 10_000).describe('… in all …'),
        seconds: z
          .int()
          .min(1)
          .max(604_800)
          .default(3600)
          .describe('… and for how long, below one top-level run.'),
      })
      .prefault({}),
  })
  .prefault({})
  .describe('Limits of sub-agents. Beyond lanes.concurrency they queue; beyond these they are refused.');
