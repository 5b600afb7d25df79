import { z } from 'zod';
import { callTimeoutMs, secretSetting, serverUrl } from '#channel-kit/settings.ts';

/** `<bot id>:<secret part>`, as BotFather gives it; refuses placeholders and the text "undefined". */
const botToken = secretSetting.pipe(
  z
    .string()
    .regex(
      /^\d{3,}:[\w-]{10,}$/,
      'is not a bot token; ask @BotFather for one, it looks like 123456:ABC-DEF…',
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
