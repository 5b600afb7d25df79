import type { ChannelCheck } from '#contracts/channel-abilities.ts';
import type { DiscordApi } from './api.ts';
import { readRefusal, reasonOf } from './failures.ts';
import { isContentGranted } from './gateway.ts';

const portal = 'on the Bot page of your application in the Discord developer portal';

/** Checks whether the token is valid, and whether the bot may read what people write in guilds. */
export async function checkAccount(
  api: Pick<DiscordApi, 'me' | 'application'>,
  signal: AbortSignal,
): Promise<readonly ChannelCheck[]> {
  try {
    const me = await api.me(signal);
    const application = await api.application(signal);
    return [
      { name: 'token', result: 'ok', detail: `the bot is ${me.username} (${me.id})` },
      contentCheck(isContentGranted(application)),
    ];
  } catch (error) {
    return [tokenCheck(error)];
  }
}

function contentCheck(isGranted: boolean): ChannelCheck {
  if (isGranted)
    return { name: 'message content', result: 'ok', detail: 'the bot can read messages in guilds' };
  return {
    name: 'message content',
    result: 'warning',
    detail:
      'in guilds the bot can only read messages that mention it, so it doesn’t know what was said before',
    fix: `turn on Message Content Intent ${portal}`,
  };
}

function tokenCheck(error: unknown): ChannelCheck {
  const refusal = readRefusal(error);
  if (refusal?.status !== 401) {
    const detail = reasonOf(error);
    return { name: 'token', result: 'failed', detail, fix: 'check that this machine can reach discord.com' };
  }
  const fix = `reset the token ${portal} and set DISCORD_BOT_TOKEN`;
  return { name: 'token', result: 'failed', detail: 'Discord refused the bot token', fix };
}
