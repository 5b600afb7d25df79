import { z } from 'zod';
import { callTimeoutMs, secretSetting, serverUrl } from '#channel-kit/settings.ts';

export const signalConfig = z.object({
  enabled: z.boolean().default(true),
  apiUrl: serverUrl,
  number: z
    .string()
    .regex(/^\+[1-9]\d{4,14}$/, 'isn’t a phone number in international form, such as +15550001111')
    .optional(),
  /** The last part of the webhook's path; without it there is only the WebSocket, which loses messages in bursts. */
  webhookSecret: secretSetting
    .pipe(z.string().regex(/^[\w-]{22,200}$/, 'needs 22 or more letters, digits, - and _; make a random one'))
    .optional(),
  aci: z.guid().optional().describe("The account's ACI, for servers that don't return it."),
  name: z
    .string()
    .min(1)
    .max(50)
    .default('Parley')
    .describe("The bot's name in a mention, and the name of the linked device."),
  readReceipts: z.boolean().default(true).describe('Tell people that their message was accepted.'),
  // Sends wait during a poll, because only one signal-cli runs at a time.
  pollSeconds: z
    .int()
    .min(1)
    .max(60)
    .default(1)
    .describe('How long one poll waits for messages (normal and native mode).'),
  pollPauseMs: z
    .int()
    .min(0)
    .max(600_000)
    .default(1000)
    .describe('Pause after a poll that brought nothing, ms.'),
  heartbeatMs: z
    .int()
    .min(20)
    .max(600_000)
    .default(20_000)
    .describe(
      'Time between two pings of the WebSocket, ms; after twice as long without an answer it is reopened.',
    ),
  // signal-cli-rest-api itself may never answer.
  callTimeoutMs: callTimeoutMs.default(60_000),
});

export type SignalConfig = z.output<typeof signalConfig>;
