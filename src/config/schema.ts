// The schema of parley.config.json. It contains every configurable number with its default; load-config.ts
// applies the environment on top. It has no secrets, which only come from the environment.
import { z } from 'zod';
import { longestWaitMs } from '#channel-kit/remote-number.ts';
import {
  agent,
  budgetLimits,
  count,
  identifier,
  skillName,
  skillVariable,
  subagents,
} from './agent-schema.ts';
import { channels, queue } from './channel-schema.ts';
import { isAddressRange, isHost, logFile, payloadLog } from './log-schema.ts';
import { longestSilenceMs, modelName, models, providers, tracing } from './model-schema.ts';
import { peer } from './peer.ts';
import { replies } from './reply-schema.ts';
import { compilePattern, maxInstructionsTogether } from './text-pattern.ts';
import { transcriber } from './transcriber-schema.ts';
import { webhooks } from './webhook-schema.ts';

/** Returns the schema of a time of at most a day, with a minimum if 0 would immediately end what it limits. */
const milliseconds = (byDefault: number, min = 0) => z.int().min(min).max(86_400_000).default(byDefault);

const budgets = z
  .strictObject(budgetLimits)
  .prefault({})
  .describe('Spending limits for models, in dollars. Absent = no limit. Checked before each call.');

const binding = z.strictObject({
  agent: identifier.describe('The agent that answers.'),
  channel: z.string().min(1).exactOptional().describe('The network, for example telegram.'),
  account: z.string().min(1).exactOptional().describe('The bot account: its name under accounts, or its id.'),
  conversation: z.string().min(1).exactOptional().describe('One group or chat, by its bare id.'),
  peer: z.string().min(1).exactOptional().describe('One person in direct chats, by their bare id.'),
  parent: z.string().min(1).exactOptional().describe('Parent group or guild, by its bare id.'),
});

const access = z
  .strictObject({
    dmPolicy: z
      .enum(['pairing', 'allowlist', 'open', 'disabled'])
      .default('pairing')
      .describe(
        'Who may write directly: people approved by code and those in allowFrom (pairing), only allowFrom (allowlist), everyone (open), nobody (disabled). Owners always may.',
      ),
    pairing: z
      .strictObject({
        validMinutes: z.int().min(1).max(1440).default(60).describe('How long a code is valid, in minutes.'),
        maxPending: count(3, 100).describe('How many requests may be pending per bot account.'),
      })
      .prefault({}),
    approvalMinutes: z
      .int()
      .min(1)
      .max(1440)
      .default(15)
      .describe('How long a person has to approve a tool call, in minutes; after that it is refused.'),
    groupPolicy: z
      .enum(['allowlist', 'open', 'disabled'])
      .default('allowlist')
      .describe(
        'Groups in which Parley answers: those in allowGroups and groups (allowlist), all (open), none (disabled).',
      ),
    allowFrom: z
      .array(peer)
      .default([])
      .describe('Who may write directly (channel:peer); owners always may.'),
    allowGroups: z.array(peer).default([]).describe('Groups in which Parley answers (channel:conversation).'),
    groups: z
      .record(
        peer,
        z.strictObject({
          requireMention: z.boolean().exactOptional().describe('Default: groups.requireMention.'),
          allowFrom: z.array(peer).exactOptional().describe('Only these members; absent = all members.'),
        }),
      )
      .default({})
      .describe('Settings of individual groups (channel:conversation); listing a group here also allows it.'),
  })
  .prefault({});

const mentionPattern = z.string().check(({ value, issues }) => {
  try {
    compilePattern(value);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    issues.push({
      code: 'custom',
      input: value,
      message: `the pattern ${JSON.stringify(value)} isn't valid: ${reason}`,
    });
  }
});

/** Says whether all patterns together are fast enough to match against every group message. */
function areQuickTogether(patterns: readonly string[]): boolean {
  const size = patterns.reduce((sum, pattern) => sum + compilePattern(pattern).size, 0);
  return size <= maxInstructionsTogether;
}

const groups = z
  .strictObject({
    requireMention: z
      .boolean()
      .default(true)
      .describe('Answer only messages that mention the bot or reply to it.'),
    mentionPatterns: z
      .array(mentionPattern)
      .max(50)
      .refine(areQuickTogether, 'the patterns are too large in total; shorten them, or use fewer')
      .default([])
      .describe(
        'RE2 patterns (no look-around, no back-references) that count as a mention; case is ignored.',
      ),
    contextLimit: z
      .int()
      .min(0)
      .max(500)
      .default(50)
      .describe('How many messages without a mention are kept as context for the next turn.'),
  })
  .prefault({});

const steerRestart = (by: 'never' | 'before-first-token') =>
  z.enum(['never', 'before-first-token']).default(by);

const run = z
  .strictObject({
    timeoutMs: milliseconds(600_000, 1000).describe('Longest run, in ms.'),
    modelIdleMs: z
      .int()
      .min(1000)
      .max(longestSilenceMs)
      .default(120_000)
      .describe('Longest silence of a model, in ms.'),
    turns: count(50, 1000).describe('Longest run, in turns: model calls with their tools.'),
    repeatedCalls: count(3, 100).describe('How many times in a row the same tool call may be made.'),
    steerTail: z
      .enum(['skip', 'finish'])
      .default('skip')
      .describe('Whether to skip or finish tool calls that haven’t started when a message is steered in.'),
    steerRestart: z
      .strictObject({ dm: steerRestart('before-first-token'), group: steerRestart('never') })
      .prefault({})
      .describe(
        'Whether any message that arrives before the first word of an answer gives up that call, so that one answer covers both; a correction, or a forward behind its comment, always does.',
      ),
    steerDelivery: z
      .enum(['one-at-a-time', 'all'])
      .default('one-at-a-time')
      .describe('How many waiting messages a run reads at each step.'),
    toolExecution: z
      .enum(['auto', 'sequential', 'parallel'])
      .default('auto')
      .describe(
        'How the calls of one turn run: in parallel if all of their tools allow it (auto), one after another (sequential), or always in parallel.',
      ),
    maxAttempts: count(3, 20).describe('Attempts at a run that crashes interrupt, including the first.'),
  })
  .prefault({});

const lanes = z
  .strictObject({
    leaseMs: z
      .int()
      .min(500)
      .max(600_000)
      .default(10_000)
      .describe(
        'Lease of a lane, in ms: once it expires, another process takes over from one that died on another machine.',
      ),
    renewMs: z
      .int()
      .min(100)
      .max(300_000)
      .default(2000)
      .describe('Interval between lease renewals, in ms; at most half of leaseMs.'),
    concurrency: z
      .strictObject({
        main: count(64, 4096),
        'sub-1': count(8, 1024),
        'sub-2': count(8, 1024),
        'sub-3': count(8, 1024),
        'sub-4': count(8, 1024),
        'sub-5': count(8, 1024),
        schedule: count(4, 1024),
        background: count(2, 1024),
      })
      .prefault({})
      .describe(
        'How many lanes of each class run at once: main, schedule and background per process, sub-agents across all processes.',
      ),
    maxRunsPerClaim: count(5, 1000).describe('How many runs in a row before a lane lets others run.'),
    maxHoldMs: milliseconds(60_000).describe('How long before a lane lets others run, in ms.'),
  })
  .refine((value) => value.renewMs * 2 <= value.leaseMs, {
    path: ['renewMs'],
    error: 'is more than half of leaseMs, so one late renewal would lose the lease',
  })
  .prefault({});

/** Returns the schema of a pause. A part with a longer wait was stored by a wrong clock and is sent immediately. */
const backoffMs = (byDefault: number) => z.int().min(1).max(longestWaitMs).default(byDefault);

const expiry = (byDefault: number) =>
  z
    .int()
    .min(60_000)
    .max(365 * 86_400_000)
    .default(byDefault);

const outbox = z
  .strictObject({
    retries: count(3, 20).describe('Further attempts at a send that the network temporarily refused.'),
    minBackoffMs: backoffMs(500).describe('Pause before the first further attempt, in ms.'),
    maxBackoffMs: backoffMs(30_000).describe('Pause before the last further attempt, in ms.'),
    sendTimeoutMs: z
      .int()
      .min(500)
      .max(120_000)
      .default(30_000)
      .describe(
        'Longest call that delivers a part, in ms; a longer one is recorded as unknown. After twice this time, another process may take over the delivery.',
      ),
    expireMs: z
      .strictObject({
        answer: expiry(3 * 86_400_000).describe('For what the agent says and sends.'),
        notice: expiry(86_400_000).describe('For Parley’s own texts.'),
        reaction: expiry(3_600_000).describe('For reactions.'),
      })
      .prefault({})
      .describe('Age at which a part that couldn’t be delivered is given up, in ms; its end is reported.'),
    resendUnknown: z.boolean().default(false).describe('Repeat unknown sends; they may arrive twice.'),
  })
  .prefault({});

const resetRule = z
  .strictObject({
    dailyAtHour: z
      .int()
      .min(0)
      .max(23)
      .exactOptional()
      .describe('Start a new session with the first message after this hour (0 to 23).'),
    idleMinutes: z
      .int()
      .min(1)
      .max(525_600)
      .exactOptional()
      .describe('Start a new session after this many minutes without a message.'),
  })
  .describe('When the next message starts a new session; empty = never.');

const reset = z
  .strictObject({
    dm: resetRule.default({}),
    group: resetRule.default({}),
    thread: resetRule.default({}),
    channels: z
      .record(z.string(), resetRule)
      .default({})
      .describe('Rules for individual channels, replacing the other three.'),
  })
  .prefault({});

const scriptHook = z.strictObject({
  event: z.string().min(1).max(100).describe('The hook, for example before_tool_call.'),
  run: z
    .string()
    .regex(/^\w[\w.-]{0,99}$/, "isn't the name of a file in hooks/")
    .describe('File in `hooks/` of the workspace; it must be executable.'),
  digest: z
    .string()
    .regex(/^sha256-[0-9a-f]{64}$/, "isn't a digest; the command `hooks accept` writes it")
    .exactOptional()
    .describe('SHA-256 of the accepted file, written by `hooks accept`; without it the script is off.'),
  timeoutMs: z.int().min(50).max(60_000).default(5000).describe('Longest time for one event, in ms.'),
  agent: identifier
    .exactOptional()
    .describe(
      'Its workspace has the file, and the script only sees its events. Default: the default agent, and all events.',
    ),
  guard: z
    .boolean()
    .default(false)
    .describe('For message_sending: a failure keeps the message back instead of letting it pass.'),
});

/** The schema of parley.config.json as written. Unknown names are errors. */
export const fileSchema = z.strictObject({
  $schema: z.string().exactOptional().describe('For editors; ignored.'),
  dataDir: z.string().min(1).exactOptional().describe('Data folder, relative to this file. Default: ./data.'),
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('Address on which the page listens; 0.0.0.0 makes it reachable from other machines.'),
  port: z.int().min(0).max(65_535).default(7411).describe('Port of the page; 0 = any free port.'),
  allowedHosts: z
    .array(
      z
        .string()
        .refine(isHost, "isn't a host as browsers send it, for example parley.home or parley.home:8443"),
    )
    .default([])
    .describe(
      'Additional host names of the page: `parley.home` for any port, `parley.home:8443` for that port only.',
    ),
  trustedProxies: z
    .array(z.string().refine(isAddressRange, "isn't an IP address or CIDR range"))
    .max(100)
    .default([])
    .describe('Proxies whose forwarding headers are trusted: addresses and CIDR ranges. Default: none.'),
  logLevel: z
    .enum(['debug', 'info', 'warn', 'error'])
    .default('info')
    .describe('Lowest level of log lines that are written.'),
  logFile,
  timeZone: z
    .string()
    .refine(isTimeZone, "isn't an IANA time zone, for example Europe/Berlin")
    .exactOptional()
    .describe("IANA time zone. Default: the machine's."),
  language: z
    .string()
    .regex(/^[a-z]{2,3}(-[a-z0-9]{1,8})*$/i, "isn't a language tag, for example en or de-AT")
    .default('en')
    .describe('Language of Parley’s own texts: en or de; any other tag means English.'),
  texts: z
    .record(z.string(), z.string().min(1))
    .default({})
    .describe('Replacements for individual texts, by their names in src/texts/en.json.'),
  allowInsecureRedis: z.boolean().default(false).describe('Accept a remote Redis without a password.'),
  role: z
    .enum(['all', 'gateway', 'worker'])
    .default('all')
    .describe('Role of this process; `start --role` overrides it.'),
  health: z
    .strictObject({
      port: z
        .int()
        .min(0)
        .max(65_535)
        .default(0)
        .describe(
          'Loopback port of /healthz, /readyz and /metrics in a worker. If it is 0 or taken, any free port, which the command `status` shows.',
        ),
    })
    .prefault({}),
  providers,
  models,
  tracing,
  payloadLog,
  model: modelName
    .exactOptional()
    .describe(
      'The model that answers unless an agent or a conversation has its own: an alias, or provider/id. Default: chosen by the API key in the environment; without one, the demo model.',
    ),
  titles: z
    .boolean()
    .default(true)
    .describe('Have a model name each conversation after its first message; agents[].titleModel sets which.'),
  agents: z
    .array(agent)
    .min(1)
    .prefault([{ id: 'main' }]),
  defaultAgent: identifier
    .exactOptional()
    .describe('Answers if no binding matches. Default: the first agent.'),
  bindings: z
    .array(binding)
    .default([])
    .describe('Which agent answers where. Every given field must match, and the most specific binding wins.'),
  dmScope: z
    .enum(['per-account-channel-peer', 'per-channel-peer', 'per-peer', 'main'])
    .default('per-account-channel-peer')
    .describe('Which direct chats are separate conversations; main = all share one.'),
  identityLinks: z
    .record(identifier, z.array(peer))
    .default({})
    .describe(
      'Accounts that belong to one person. The page and the terminal belong to "owner" unless listed elsewhere.',
    ),
  owners: z.array(peer).default([]).describe('People with all permissions (channel:peer).'),
  budgets,
  access,
  groups,
  queue,
  joinMs: milliseconds(1500).describe(
    'How long to wait for more of an album or a split text after its last message, in ms.',
  ),
  run,
  lanes,
  subagents,
  outbox,
  replies,
  reset,
  media: z
    .strictObject({
      maxMb: z
        .number()
        .min(0.1)
        .max(2000)
        .default(20)
        .describe('Largest file that is accepted, or sent by an agent, in megabytes.'),
      maxMbPerHour: z
        .number()
        .min(0.1)
        .max(1_000_000)
        .default(100)
        .describe('How much is fetched per sender and hour, in megabytes.'),
      maxUploadsMb: z
        .number()
        .min(1)
        .max(100_000)
        .default(64)
        .describe(
          'How much is uploaded to networks at once, over all conversations, in megabytes; what exceeds it waits.',
        ),
      keepDays: count(30, 36_500).describe('Days until the files of finished messages are removed.'),
      transcriber: transcriber.exactOptional(),
    })
    .prefault({}),
  rateLimit: z
    .strictObject({
      perSenderPerMinute: count(60, 100_000).describe(
        'How many messages per minute are accepted from one sender.',
      ),
    })
    .prefault({}),
  channels,
  plugins: z
    .strictObject({
      files: z.looseObject({ enabled: z.boolean().default(true).describe('The file tools.') }).prefault({}),
      shell: z
        .looseObject({
          enabled: z.boolean().default(false).describe('The shell tools: commands in a sandbox.'),
        })
        .prefault({}),
      web: z
        .looseObject({
          enabled: z.boolean().default(true).describe('The web tools.'),
          search: z
            .strictObject({
              backend: z.enum(['searxng', 'brave', 'tavily']).describe('Service that web_search asks.'),
              baseUrl: z
                .url({ protocol: /^https?$/, error: "isn't an http or https address" })
                .exactOptional()
                .describe('Address of your SearXNG; may be private. The other services have their own.'),
              keyEnv: z
                .string()
                .regex(/^\w+$/, "isn't a variable's name")
                .exactOptional()
                .describe('Variable of the key. Default: BRAVE_API_KEY or TAVILY_API_KEY.'),
            })
            .exactOptional()
            .describe('Turns web_search on.'),
        })
        .prefault({}),
      code_search: z
        .looseObject({ enabled: z.boolean().default(true).describe('The tool code_search.') })
        .prefault({}),
    })
    // Each is checked when it is loaded, so that a wrong one costs only itself.
    .catchall(z.unknown())
    .prefault({}),
  hooks: z
    .array(scriptHook)
    .max(50)
    .default([])
    .describe('Scripts in `hooks/` of a workspace that are called at fixed moments.'),
  skills: z
    .strictObject({
      environment: z
        .record(skillName, z.array(skillVariable).max(50))
        .default({})
        .describe(
          'Names of variables that commands of a skill get, by skill; their values are secrets of the environment.',
        ),
    })
    .prefault({}),
  webhooks,
  shutdownMs: milliseconds(15_000).describe(
    'Longest time that a stop may take, in ms; unfinished work continues after the next start.',
  ),
});

export type FileSettings = z.output<typeof fileSchema>;

function isTimeZone(value: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: value });
    return true;
  } catch {
    return false;
  }
}
