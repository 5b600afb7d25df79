// The shape of parley.config.json. Every number Parley has is here with its default; the environment
// is laid over it by load-config.ts. Secrets are not in it: they come from the environment only.
import { z } from 'zod';
import { isAddressRange } from './address-range.ts';
import { agent, budgetLimits, count, identifier, subagents } from './agent-schema.ts';
import { httpUrl, modelName, models, payloadLog, providers, tracing } from './model-schema.ts';
import { peer } from './peer.ts';
import { queue } from './queue-schema.ts';
import { compilePattern } from './text-pattern.ts';

const milliseconds = (byDefault: number) => z.int().min(0).max(86_400_000).default(byDefault);

const budgets = z
  .strictObject(budgetLimits)
  .prefault({})
  .describe(
    'Most dollars that models may cost. Absent = no limit. Each call is held to it before it is made.',
  );

const binding = z.strictObject({
  agent: identifier,
  channel: z.string().min(1).exactOptional(),
  account: z.string().min(1).exactOptional(),
  conversation: z.string().min(1).exactOptional(),
  peer: z.string().min(1).exactOptional(),
  parent: z.string().min(1).exactOptional().describe('Parent group or guild.'),
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
        validMinutes: z.int().min(1).max(1440).default(60).describe('How long a code is valid.'),
        maxPending: count(3, 100).describe('Most pending requests, per bot account.'),
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
          requireMention: z.boolean().exactOptional(),
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

const groups = z
  .strictObject({
    requireMention: z.boolean().default(true),
    mentionPatterns: z
      .array(mentionPattern)
      .max(50)
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
    timeoutMs: milliseconds(600_000),
    modelIdleMs: milliseconds(120_000).describe('Longest silence of a model stream.'),
    turns: count(50, 1000),
    repeatedCalls: count(3, 100).describe('How many times in a row the same tool call may be made.'),
    steerTail: z
      .enum(['skip', 'finish'])
      .default('skip')
      .describe('Tool calls that have not begun when a message is steered in: skip or finish them.'),
    steerDelivery: z
      .enum(['one-at-a-time', 'all'])
      .default('one-at-a-time')
      .describe('How many waiting messages a run reads at each step.'),
    toolExecution: z.enum(['auto', 'sequential', 'parallel']).default('auto'),
    maxAttempts: count(3, 20).describe('How often a run is resumed after a crash.'),
  })
  .prefault({});

const lanes = z
  .strictObject({
    leaseMs: z.int().min(500).max(600_000).default(10_000),
    renewMs: z.int().min(100).max(300_000).default(2000),
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
      .describe('Lanes of each class that a process runs at once.'),
    maxRunsPerClaim: count(5, 1000).describe('A lane lets others run after this many runs in a row …'),
    maxHoldMs: milliseconds(60_000).describe('… or after this time.'),
  })
  .refine((value) => value.renewMs * 2 <= value.leaseMs, {
    path: ['renewMs'],
    error: 'is more than half of leaseMs, so one late renewal would lose the lease',
  })
  .prefault({});

const outbox = z
  .strictObject({
    retries: count(3, 20),
    minBackoffMs: milliseconds(500),
    maxBackoffMs: milliseconds(30_000),
    sendTimeoutMs: z
      .int()
      .min(500)
      .max(120_000)
      .default(30_000)
      .describe(
        'A longer call is recorded as unknown. After twice as long another process may take over the delivery.',
      ),
    resendUnknown: z.boolean().default(false).describe('Repeat unknown sends; they may arrive twice.'),
  })
  .prefault({});

const replies = z
  .strictObject({
    replyToMode: z.enum(['off', 'first', 'all']).default('off'),
    preview: z.boolean().default(true),
    ackSuppress: z
      .boolean()
      .default(true)
      .describe('Drop a mere acknowledgement after the agent sent the answer itself.'),
  })
  .prefault({});

const resetRule = z
  .strictObject({
    dailyAtHour: z.int().min(0).max(23).exactOptional(),
    idleMinutes: z.int().min(1).max(525_600).exactOptional(),
  })
  .describe('When the next message starts a new session; empty = never.');

const reset = z
  .strictObject({
    dm: resetRule.default({}),
    group: resetRule.default({}),
    thread: resetRule.default({}),
    channels: z.record(z.string(), resetRule).default({}).describe('Overrides per channel.'),
  })
  .prefault({});

/** Each account inherits the settings beside `accounts` and overrides them with its own. */
const accounts = z
  .record(
    identifier,
    z.looseObject({
      enabled: z.boolean().exactOptional(),
      tokenEnv: z
        .string()
        .regex(/^[A-Z][A-Z0-9_]*$/, "isn't the name of a variable, for example WORK_BOT_TOKEN")
        .exactOptional()
        .describe('The variable of its secret. Default: the variable of the network plus _<NAME>.'),
    }),
  )
  .default({})
  .describe('More accounts on this network, under names you choose.');

const channels = z
  .strictObject({
    telegram: z
      .looseObject({
        enabled: z.boolean().exactOptional().describe('Default: on when TELEGRAM_BOT_TOKEN is set.'),
        apiRoot: httpUrl.exactOptional(),
        accounts,
      })
      .prefault({}),
    discord: z
      .looseObject({
        enabled: z.boolean().exactOptional().describe('Default: on when DISCORD_BOT_TOKEN is set.'),
        apiBase: httpUrl.exactOptional().describe("The REST base; the gateway's address comes from it."),
        accounts,
      })
      .prefault({}),
    signal: z
      .looseObject({
        enabled: z.boolean().exactOptional().describe('Default: on when SIGNAL_API_URL is set.'),
        apiUrl: httpUrl.exactOptional().describe('Address of signal-cli-rest-api.'),
        number: z
          .string()
          .regex(/^\+[1-9]\d{4,14}$/, "isn't a phone number in international form, for example +15550001111")
          .exactOptional()
          .describe('Default: the only account of the server.'),
        accounts,
      })
      .prefault({}),
    web: z.looseObject({ enabled: z.boolean().default(true) }).prefault({}),
    terminal: z.looseObject({ enabled: z.boolean().default(true) }).prefault({}),
  })
  .prefault({});

/** parley.config.json as written. Unknown names are errors. */
export const fileSchema = z.strictObject({
  $schema: z.string().exactOptional().describe('For editors; ignored.'),
  dataDir: z.string().min(1).exactOptional().describe('Default ./data; relative to this file.'),
  host: z.string().min(1).default('127.0.0.1'),
  port: z.int().min(0).max(65_535).default(7411).describe('0 takes any free port.'),
  allowedHosts: z
    .array(z.string().min(1))
    .default([])
    .describe('Further names of the page: `parley.home` on every port, `parley.home:8443` on that one.'),
  trustedProxies: z
    .array(z.string().refine(isAddressRange, "isn't an IP address or CIDR range"))
    .max(100)
    .default([])
    .describe('Proxies whose forwarded headers are trusted: addresses and CIDR ranges. Default: none.'),
  logLevel: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
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
    .describe('Replaces single texts of src/texts/english.ts, by their names there.'),
  allowInsecureRedis: z.boolean().default(false).describe('Accept a remote Redis without a password.'),
  role: z
    .enum(['all', 'gateway', 'worker'])
    .default('all')
    .describe('What this process does; `--role` of the command `start` overrides it.'),
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
      'Answers unless an agent or a conversation has another: an alias, or provider/id. Default: by the API key in the environment; without any the demo.',
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
  bindings: z.array(binding).default([]),
  dmScope: z
    .enum(['per-account-channel-peer', 'per-channel-peer', 'per-peer', 'main'])
    .default('per-account-channel-peer'),
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
    'Albums and split texts are joined until this long after their last message.',
  ),
  run,
  lanes,
  subagents,
  outbox,
  replies,
  reset,
  media: z.strictObject({ maxMb: z.number().min(0.1).max(2000).default(20) }).prefault({}),
  rateLimit: z
    .strictObject({
      perSenderPerMinute: count(60, 100_000).describe('Messages one sender may have accepted.'),
    })
    .prefault({}),
  channels,
  plugins: z
    .strictObject({ files: z.looseObject({ enabled: z.boolean().default(true) }).prefault({}) })
    .prefault({}),
  shutdownMs: milliseconds(15_000),
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
