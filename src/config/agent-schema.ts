/** The schema of agents and of their sub-agents' limits, and the pieces that other settings share. */
import { z } from 'zod';
import { reasoningLevels } from '#contracts/model.ts';
import { coordinatorItself } from '#contracts/task.ts';

/** Returns the schema of a count, at least one. */
export const count = (byDefault: number, max = 1_000_000) => z.int().min(1).max(max).default(byDefault);

/** A name chosen by the operator, for example of an agent, an account or a person. */
export const identifier = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/i, 'use up to 64 letters, digits, - and _')
  .refine((value) => value !== 'agent', 'the name "agent" is reserved');

const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, "isn't a tool's name, for example web_fetch");

/** A rule for calls of one tool. */
const callRule = z.strictObject({
  tool: toolName.describe('Name of the tool.'),
  match: z
    .record(z.string().min(1).max(64), z.string().max(1000))
    .exactOptional()
    .describe(
      'Patterns for arguments, by name, for example { "command": "git log*" }. * stands for any text; in a rule that allows, not for characters that let a shell run something else. Absent: every call.',
    ),
  action: z.enum(['allow', 'ask', 'deny']).describe('What happens to a call that fits.'),
});

/** A variable that a skill may get: none that changes how a command's programs are found or loaded. */
export const skillVariable = z
  .string()
  .regex(/^[A-Za-z_]\w{0,99}$/, "isn't a variable's name, for example WEATHER_KEY")
  .regex(
    /^(?!(?:LD_|BASH_|PATH$|HOME$|ENV$|IFS$|SKILL_DIR$))/,
    'changes how programs run; name another variable',
  );

/** A skill's name, as its folder is called. */
export const skillNamePattern = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

export const skillName = z
  .string()
  .max(64)
  .regex(skillNamePattern, "isn't a skill's name, for example weather-report");

const dollars = z.number().min(0).max(1_000_000).exactOptional();

const agentBudgets = {
  run: dollars.describe('Dollars per answered message.'),
  session: dollars.describe('Dollars per conversation, until /new.'),
  tree: dollars.describe('Dollars per message, including everything its sub-agents do.'),
  person: dollars.describe('Dollars per person and day.'),
};

/** Top-level budgets, in dollars. */
export const budgetLimits = {
  ...agentBudgets,
  gateway: dollars.describe('Dollars for everyone together, per day.'),
};

/** One agent, as written. */
export const agent = z.strictObject({
  id: identifier
    .refine(
      (id) => id !== coordinatorItself,
      'the name "self" is reserved: it means the coordinator of a task',
    )
    .describe('Its name in session keys, bindings and commands.'),
  name: z.string().min(1).max(100).exactOptional().describe('What it calls itself; default: Parley.'),
  workspace: z
    .string()
    .min(1)
    .exactOptional()
    .describe(
      'Folder for its files, relative to the data folder. Default: workspace, or workspace-<id> for further agents. It must not contain Parley’s own files.',
    ),
  specialty: z
    .string()
    .trim()
    .min(1)
    .max(200)
    .exactOptional()
    .describe('What it is good at, in one sentence: other agents read it when they choose whom to ask.'),
  capabilities: z
    .array(z.string().trim().min(1).max(60))
    .max(20)
    .exactOptional()
    .describe('What it can do, in a few words each, for example "read invoices"; shown with its specialty.'),
  profile: z.string().exactOptional().describe('Text added before its instructions.'),
  model: z
    .string()
    .min(1)
    .max(200)
    .exactOptional()
    .describe('Model that answers; default: the top-level model.'),
  titleModel: z
    .string()
    .min(1)
    .max(200)
    .exactOptional()
    .describe('Model that writes the titles of its conversations.'),
  summaryModel: z
    .string()
    .min(1)
    .max(200)
    .exactOptional()
    .describe('Model that summarises its conversations.'),
  reasoning: z
    .enum(reasoningLevels)
    .default('off')
    .describe('How long its model thinks before it answers; /think changes it for a conversation.'),
  budgets: z
    .strictObject(agentBudgets)
    .exactOptional()
    .describe('Its own limits, replacing the top-level budgets.'),
  tools: z
    .strictObject({
      allow: z.array(toolName).exactOptional().describe('Only these tools; absent = all.'),
      deny: z.array(toolName).default([]).describe('Never these tools, even if allowed.'),
      rules: z
        .array(callRule)
        .max(200)
        .exactOptional()
        .describe(
          'Which calls run, which need the approval of a person, and which never run. The first rule that fits counts; without one, the tool decides: bash asks, the others run.',
        ),
    })
    .prefault({})
    .describe('Tools of its runs. These lists can only remove tools.'),
  skills: z
    .array(skillName)
    .exactOptional()
    .describe('Only these skills; absent = all that you have accepted.'),
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
      .describe('Levels of sub-agents; with 2, a sub-agent may start sub-agents of its own.'),
    authority: z
      .enum(['owner', 'member', 'guest'])
      .default('guest')
      .describe(
        'Least trusted person whose messages may start sub-agents, which never have more rights than that person.',
      ),
    maxChildrenPerAgent: count(5, 100).describe('How many sub-agents a session may have at a time.'),
    tree: z
      .strictObject({
        nodes: count(20, 1000).describe(
          'How many sub-agents there may be at a time under one top-level run.',
        ),
        lifetime: count(200, 10_000).describe('How many sub-agents one top-level run may start in total.'),
        graphNodes: count(200, 1000).describe(
          'How many subtasks the agents under one top-level run may delegate in total.',
        ),
        seconds: z
          .int()
          .min(1)
          .max(604_800)
          .default(3600)
          .describe('How long the sub-agents under one top-level run may take, in seconds.'),
      })
      .prefault({}),
  })
  .prefault({})
  .describe('Limits of sub-agents. Past lanes.concurrency they queue; past these limits they are refused.');
