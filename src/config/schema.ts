// The shape of parley.config.json. Every number Parley has is here with its default; the environment
// is laid over it by load-config.ts. Secrets are not in it: they come from the environment only.
import { z } from 'zod';
import { longestWaitMs } from '#channel-kit/remote-number.ts';
import { isAddressRange, isHost } from './address.ts';
import { agent, budgetLimits, count, identifier, subagents } from './agent-schema.ts';
import { channels } from './channel-schema.ts';
import { longestSilenceMs, modelName, models, payloadLog, providers, tracing } from './model-schema.ts';
import { peer } from './peer.ts';
import { queue } from './queue-schema.ts';
import { compilePattern, maxInstructionsTogether } from './text-pattern.ts';

/** A time of at most a day. Where 0 would end at once what it limits, it has a least value. */
const milliseconds = (byDefault: number, min = 0) => z.int().min(min).max(86_400_000).default(byDefault);

const budgets = z
  .strictObject(budgetLimits)
  .prefault({})
  .describe('The most that models may cost, in dollars. Absent = no limit. Checked before each call.');

const binding = z.strictObject({
  agent: identifier.describe('The agent that answers.'),
  channel: z.string().min(1).exactOptional().describe('The network, for example telegram.'),
  account: z.string().min(1).exactOptional().describe('The bot: its name under accounts, or its id.'),
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
        'Who may write directly: people approved by code, and allowFrom (pairing); allowFrom only (allowlist); everybody (open); nobody (disabled). Owners always may.',
      ),
    pairing: z
      .strictObject({
        validMinutes: z.int().min(1).max(1440).default(60).describe('How long a code is valid, minutes.'),
        maxPending: count(3, 100).describe('How many requests may be pending, per bot account.'),
      })
      .prefault({}),
    groupPolicy: z
      .enum(['allowlist', 'open', 'disabled'])
      .default('allowlist')
      .describe(
        'Which groups are answered: those in allowGroups and groups (allowlist), all (open), none (disabled).',
      ),
    allowFrom: z
      .array(peer)
      .default([])
      .describe('Who may write directly (channel:peer); owners always may.'),
    allowGroups: z.array(peer).default([]).describe('Groups that are answered (channel:conversation).'),
    groups: z
      .record(
        peer,
        z.strictObject({
          requireMention: z.boolean().exactOptional().describe('Default: groups.requireMention.'),
          allowFrom: z.array(peer).exactOptional().describe('Only these members; absent = all members.'),
        }),
      )
      .default({})
      .describe('Settings of single groups (channel:conversation); naming one here also allows it.'),
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

/** Together they are matched with each message of a group, in one go. */
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
      .describe('Unmentioned messages kept for the next turn.'),
  })
  .prefault({});

const run = z
  .strictObject({
    timeoutMs: milliseconds(600_000, 1000).describe('Longest run, ms.'),
    modelIdleMs: z
      .int()
      .min(1000)
      .max(longestSilenceMs)
      .default(120_000)
      .describe('Longest time without output from a model, ms.'),
    turns: count(50, 1000).describe('Longest run, in turns (model calls with their tools).'),
    repeatedCalls: count(3, 100).describe('How many times in a row the same tool call may be made.'),
    steerTail: z
      .enum(['skip', 'finish'])
      .default('skip')
      .describe('Tool calls that have not begun when a message is steered in: skip or finish them.'),
    steerDelivery: z
      .enum(['one-at-a-time', 'all'])
      .default('one-at-a-time')
      .describe('How many waiting messages a run reads at each step.'),
    toolExecution: z
      .enum(['auto', 'sequential', 'parallel'])
      .default('auto')
      .describe(
        'Tool calls of one turn: in parallel if all of their tools allow it (auto), one after the other, or always in parallel.',
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
      .describe('Lease of a lane, ms, after which another process takes over from a dead one elsewhere.'),
    renewMs: z
      .int()
      .min(100)
      .max(300_000)
      .default(2000)
      .describe('Time between two renewals of a lease, ms; at most half of leaseMs.'),
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
        'How many lanes of each class run at the same time: main, schedule and background in each process, sub-agents across all processes.',
      ),
    maxRunsPerClaim: count(5, 1000).describe('A lane lets others run after this many runs in a row …'),
    maxHoldMs: milliseconds(60_000).describe('… or after this time, ms.'),
  })
  .refine((value) => value.renewMs * 2 <= value.leaseMs, {
    path: ['renewMs'],
    error: 'is more than half of leaseMs, so one late renewal would lose the lease',
  })
  .prefault({});

/** A part that is to wait for longer counts as stored by a wrong clock, and is sent at once. */
const backoffMs = (byDefault: number) => z.int().min(1).max(longestWaitMs).default(byDefault);

const outbox = z
  .strictObject({
    retries: count(3, 20).describe('Further attempts at a send that the network refused temporarily.'),
    minBackoffMs: backoffMs(500).describe('Pause before the first further attempt, ms …'),
    maxBackoffMs: backoffMs(30_000).describe('… and before the last.'),
    sendTimeoutMs: z
      .int()
      .min(500)
      .max(120_000)
      .default(30_000)
      .describe(
        'Longest call that delivers a part, ms; a longer one is recorded as unknown. After twice as long another process may take over the delivery.',
      ),
    resendUnknown: z.boolean().default(false).describe('Repeat unknown sends; they may arrive twice.'),
  })
  .prefault({});

const replies = z
  .strictObject({
    replyToMode: z
      .enum(['off', 'first', 'all'])
      .default('off')
      .describe('Which messages of an answer quote the message they answer.'),
    preview: z
      .boolean()
      .default(true)
      .describe('Show an answer while it is being written, where the network supports it.'),
    ackSuppress: z
      .boolean()
      .default(true)
      .describe('Drop a mere acknowledgement when the agent has already sent the answer itself.'),
  })
  .prefault({});

const resetRule = z
  .strictObject({
    dailyAtHour: z
      .int()
      .min(0)
      .max(23)
      .exactOptional()
      .describe('At the first message after this hour (0 to 23).'),
    idleMinutes: z
      .int()
      .min(1)
      .max(525_600)
      .exactOptional()
      .describe('After this many minutes without a message.'),
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
      .describe('A rule of its own for a channel, in place of the other three.'),
  })
  .prefault({});

/** parley.config.json as written. Unknown names are errors. */
export const fileSchema = z.strictObject({
  $schema: z.string().exactOptional().describe('For editors; ignored.'),
  dataDir: z.string().min(1).exactOptional().describe('Default ./data; relative to this file.'),
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('Address the page listens on; 0.0.0.0 for other machines.'),
  port: z.int().min(0).max(65_535).default(7411).describe('0 takes any free port.'),
  allowedHosts: z
    .array(
      z
        .string()
        .refine(isHost, "isn't a host as browsers send it, for example parley.home or parley.home:8443"),
    )
    .default([])
    .describe(
      'Further host names of the page: `parley.home` on every port, `parley.home:8443` only on that one.',
    ),
  trustedProxies: z
    .array(z.string().refine(isAddressRange, "isn't an IP address or CIDR range"))
    .max(100)
    .default([])
    .describe('Proxies whose forwarded headers are trusted: addresses and CIDR ranges. Default: none.'),
  logLevel: z
    .enum(['debug', 'info', 'warn', 'error'])
    .default('info')
    .describe('Least severe level that is logged.'),
  timeZone: z
    .string()
    .refine(isTimeZone, "isn't an IANA time zone, for example Europe/Berlin")
    .exactOptional()
    .describe("Default: the machine's."),
  language: z
    .string()
    .regex(/^[a-z]{2,3}(-[a-z0-9]{1,8})*$/i, "isn't a language tag, for example en or de-AT")
    .default('en')
    .describe('Language of Parley’s own texts: en or de; any other is in English.'),
  texts: z
    .record(z.string(), z.string().min(1))
    .default({})
    .describe('Replaces individual texts, by their names in src/texts/english.ts.'),
  allowInsecureRedis: z.boolean().default(false).describe('Accept a remote Redis without a password.'),
  role: z
    .enum(['all', 'gateway', 'worker'])
    .default('all')
    .describe('What this process does; `start --role` overrides it.'),
  health: z
    .strictObject({
      port: z
        .int()
        .min(0)
        .max(65_535)
        .default(0)
        .describe(
          'Loopback port of /healthz, /readyz and /metrics in a worker. 0 or a port in use: any free one, shown by the command `status`.',
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
      'The model that answers, unless an agent or a conversation has its own: an alias, or provider/id. Default: chosen by the API key in the environment; the demo without one.',
    ),
  titles: z
    .boolean()
    .default(true)
    .describe('Have a model name each conversation after its first message; agents[].titleModel says which.'),
  agents: z
    .array(agent)
    .min(1)
    .prefault([{ id: 'main' }]),
  defaultAgent: identifier.exactOptional().describe('Default: the first agent.'),
  bindings: z
    .array(binding)
    .default([])
    .describe('Which agent answers where; every field given must match, and the most specific binding wins.'),
  dmScope: z
    .enum(['per-account-channel-peer', 'per-channel-peer', 'per-peer', 'main'])
    .default('per-account-channel-peer')
    .describe('Which direct chats are separate conversations; main: all of them are one.'),
  identityLinks: z
    .record(identifier, z.array(peer))
    .default({})
    .describe('One person, several accounts. Page and terminal belong to "owner" unless listed elsewhere.'),
  owners: z.array(peer).default([]).describe('People with all permissions (channel:peer).'),
  budgets,
  access,
  groups,
  queue,
  joinMs: milliseconds(1500).describe(
    'Albums and split texts are joined until this long after their last message, ms.',
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
        .describe('Largest file that is accepted, or sent by an agent, megabytes.'),
      maxMbPerHour: z
        .number()
        .min(0.1)
        .max(1_000_000)
        .default(100)
        .describe('Files fetched for one sender within an hour, megabytes.'),
      keepDays: count(30, 36_500).describe('Days until the files of finished messages are removed.'),
    })
    .prefault({}),
  rateLimit: z
    .strictObject({
      perSenderPerMinute: count(60, 100_000).describe(
        'How many messages a minute are accepted from one sender.',
      ),
    })
    .prefault({}),
  channels,
  plugins: z
    .strictObject({
      files: z.looseObject({ enabled: z.boolean().default(true).describe('The file tools.') }).prefault({}),
    })
    .prefault({}),
  shutdownMs: milliseconds(15_000).describe(
    'Longest time a stop may take, ms; unfinished work continues after the next start.',
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
