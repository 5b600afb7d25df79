import { z } from 'zod';
import { callTimeoutMs, secretSetting, serverUrl } from '#channel-kit/settings.ts';

/** `<bot id>:<secret part>`, as BotFather gives it; rejects placeholders and the text "undefined". */
const botToken = secretSetting.pipe(
  z
    .string()
    .regex(
      /^\d{3,}:[\w-]{10,}$/,
      'isn’t a bot token, which looks like 123456:ABC-DEF…; ask @BotFather for one',
    ),
);

export const telegramConfig = z.object({
  enabled: z.boolean().default(true),
  token: botToken,
  apiRoot: serverUrl.default('https://api.telegram.org'),
  pollSeconds: z.int().min(1).max(50).default(30).describe('How long one call waits for updates.'),
  callTimeoutMs: callTimeoutMs.default(30_000),
});

export type TelegramConfig = z.output<typeof telegramConfig>;
