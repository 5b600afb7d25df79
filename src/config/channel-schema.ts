/** The schema of the networks and their accounts, as written. Each channel has a schema for its own settings. */
import { z } from 'zod';
import { dropPolicies, longestWindows, queueModes } from '#contracts/queue-settings.ts';
import { identifier } from './agent-schema.ts';
import { httpUrl } from './model-schema.ts';
import { peer } from './peer.ts';

/** Each account inherits the settings next to `accounts` and overrides them with its own. */
const accounts = z
  .record(
    identifier,
    z.looseObject({
      enabled: z
        .boolean()
        .exactOptional()
        .describe('Whether the account is on. Default: if its secret is set.'),
      tokenEnv: z
        .string()
        .regex(/^[A-Z][A-Z0-9_]*$/, "isn't the name of a variable, for example WORK_BOT_TOKEN")
        .exactOptional()
        .describe('Environment variable with its secret. Default: the variable of the network plus _<NAME>.'),
    }),
  )
  .default({})
  .describe('More accounts on this network, under names you choose.');

export const channels = z
  .strictObject({
    telegram: z
      .looseObject({
        enabled: z
          .boolean()
          .exactOptional()
          .describe('Whether Telegram is on. Default: if TELEGRAM_BOT_TOKEN is set.'),
        apiRoot: httpUrl.exactOptional().describe('Address of your own Bot API server.'),
        accounts,
      })
      .prefault({}),
    discord: z
      .looseObject({
        enabled: z
          .boolean()
          .exactOptional()
          .describe('Whether Discord is on. Default: if DISCORD_BOT_TOKEN is set.'),
        apiBase: httpUrl
          .exactOptional()
          .describe("REST base address, which also supplies the gateway's address."),
        accounts,
      })
      .prefault({}),
    signal: z
      .looseObject({
        enabled: z
          .boolean()
          .exactOptional()
          .describe('Whether Signal is on. Default: if SIGNAL_API_URL is set.'),
        apiUrl: httpUrl.exactOptional().describe('Address of signal-cli-rest-api.'),
        number: z
          .string()
          .regex(/^\+[1-9]\d{4,14}$/, "isn't a phone number in international form, for example +15550001111")
          .exactOptional()
          .describe('Phone number. Default: the only account of the server.'),
        accounts,
      })
      .prefault({}),
    web: z
      .looseObject({ enabled: z.boolean().default(true).describe('Whether the page is on.') })
      .prefault({}),
    terminal: z
      .looseObject({ enabled: z.boolean().default(true).describe('Whether `npm run chat` can connect.') })
      .prefault({}),
  })
  .prefault({});

/** The schema of how lanes treat incoming messages, and of how senders are notified. */
const queueFields = {
  mode: z.enum(queueModes).describe('What happens to a message that arrives during a run.'),
  debounceMs: z
    .int()
    .min(0)
    .max(3_600_000)
    .describe(
      `Debounce before a first run, in ms. Each message restarts it, up to ${longestWindows} times its length.`,
    ),
  quietMs: z
    .int()
    .min(0)
    .max(3_600_000)
    .describe(
      `With collect: how long to wait for more messages after a run, in ms. Each message restarts it, up to ${longestWindows} times its length.`,
    ),
  cap: z.int().min(1).max(1000).describe('How many messages may wait.'),
  drop: z.enum(dropPolicies).describe('Messages to drop when the cap is reached.'),
};

const queueDefaults = (mode: (typeof queueModes)[number]) =>
  z
    .strictObject({
      mode: queueFields.mode.default(mode),
      debounceMs: queueFields.debounceMs.default(0),
      quietMs: queueFields.quietMs.default(1000),
      cap: queueFields.cap.default(20),
      drop: queueFields.drop.default('summarize'),
    })
    .prefault({});

const queueOverride = z.strictObject({
  mode: queueFields.mode.exactOptional(),
  debounceMs: queueFields.debounceMs.exactOptional(),
  quietMs: queueFields.quietMs.exactOptional(),
  cap: queueFields.cap.exactOptional(),
  drop: queueFields.drop.exactOptional(),
});

const noticeKind = z.enum(['reaction', 'line', 'off']);

const mark = z.string().max(16);

const waitingNotice = z
  .strictObject({
    kind: noticeKind
      .default('reaction')
      .describe(
        'Waiting notice: a reaction if the network has them, otherwise a line in direct chats (reaction); a line in direct chats and a reaction in groups (line); none (off).',
      ),
    afterMs: z
      .int()
      .min(500)
      .max(3_600_000)
      .default(2000)
      .describe('How long a message waits before the notice, in ms.'),
    emoji: z.string().min(1).max(16).default('👀').describe('Reaction to use; the network must allow it.'),
    merged: mark
      .default('🤝')
      .describe('Reaction while a run answers a message together with later ones; empty = none.'),
    read: mark
      .default('✍️')
      .describe('Reaction while a run that was already working takes a message into account; empty = none.'),
    channels: z.record(z.string(), noticeKind).default({}).describe('Overrides per channel.'),
  })
  .prefault({});

export const queue = z
  .strictObject({
    dm: queueDefaults('steer'),
    group: queueDefaults('collect'),
    channels: z.record(z.string(), queueOverride).default({}).describe('Overrides per channel.'),
    conversations: z
      .record(peer, queueOverride)
      .default({})
      .describe('Overrides per conversation (channel:conversation).'),
    waitingNotice,
  })
  .prefault({});
