/** The shape of the networks and their accounts, as written. Each channel checks what is its own by its own schema. */
import { z } from 'zod';
import { identifier } from './agent-schema.ts';
import { httpUrl } from './model-schema.ts';

/** Each account inherits the settings beside `accounts` and overrides them with its own. */
const accounts = z
  .record(
    identifier,
    z.looseObject({
      enabled: z.boolean().exactOptional().describe('Default: on when its secret is set.'),
      tokenEnv: z
        .string()
        .regex(/^[A-Z][A-Z0-9_]*$/, "isn't the name of a variable, for example WORK_BOT_TOKEN")
        .exactOptional()
        .describe('The variable of its secret. Default: the variable of the network plus _<NAME>.'),
    }),
  )
  .default({})
  .describe('More accounts on this network, under names you choose.');

export const channels = z
  .strictObject({
    telegram: z
      .looseObject({
        enabled: z.boolean().exactOptional().describe('Default: on when TELEGRAM_BOT_TOKEN is set.'),
        apiRoot: httpUrl.exactOptional().describe('Address of a Bot API server of your own.'),
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
    web: z.looseObject({ enabled: z.boolean().default(true).describe('The page.') }).prefault({}),
    terminal: z.looseObject({ enabled: z.boolean().default(true).describe('`npm run chat`.') }).prefault({}),
  })
  .prefault({});
