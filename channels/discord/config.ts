import { z } from 'zod';
import { callTimeoutMs, secretSetting, serverUrl } from '#channel-kit/settings.ts';

/** Three parts separated by dots, the first of which encodes the bot's id; rejects placeholders. */
const botToken = secretSetting.pipe(
  z
    .string()
    .regex(
      /^[\w-]{10,}\.[\w-]{4,}\.[\w-]{20,}$/,
      'isn’t a bot token; copy it from the Bot page of your application in the Discord developer portal',
    ),
);

export const discordConfig = z.object({
  enabled: z.boolean().default(true),
  token: botToken,
  apiBase: serverUrl.default('https://discord.com/api'),
  callTimeoutMs: callTimeoutMs.default(15_000),
  backfillHours: z
    .int()
    .min(1)
    .max(8760)
    .default(168)
    .describe('After a longer absence, older messages aren’t fetched; that is reported as a gap.'),
});

export type DiscordConfig = z.output<typeof discordConfig>;
