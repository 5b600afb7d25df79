/** The schema of the networks and their accounts, as written. Each channel has a schema for its own settings. */
import { z } from 'zod';
import { identifier } from './agent-schema.ts';
import { httpUrl } from './model-schema.ts';

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
