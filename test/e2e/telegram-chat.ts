/** People who write to the bot on Telegram, and what they see of its answers. */
import type { TelegramServer } from '../platforms/telegram/server.ts';
import type { StandingMessage, TgUser } from '../platforms/telegram/types.ts';
import { patienceMs } from '../support/patience.ts';
import { type ChannelShown, channelShown } from './page-state.ts';

export const ada: TgUser = { id: 501, is_bot: false, first_name: 'Ada', username: 'ada_l' };
export const bob: TgUser = { id: 502, is_bot: false, first_name: 'Bob' };
export const eve: TgUser = { id: 666, is_bot: false, first_name: 'Eve' };

/** Returns what the page shows for the Telegram channel. */
export function telegramState(url: string): Promise<ChannelShown> {
  return channelShown(url, 'telegram');
}

/** Returns what the bot said in a chat, oldest first. */
export function said(telegram: TelegramServer, chat: number): readonly string[] {
  return telegram.botMessages(chat).map((message) => message.text);
}

/** Waits until the beginning of an answer is shown in a private chat. */
export function untilWriting(telegram: TelegramServer, chat: number): Promise<unknown> {
  return telegram.waitFor(() => telegram.drafts.some(({ chatId }) => chatId === chat));
}

/** Waits until the bot has said exactly this text, and returns its message. */
export function untilSaid(
  telegram: TelegramServer,
  what: { readonly chat: number; readonly text: string | RegExp },
  deadlineMs = patienceMs,
): Promise<StandingMessage> {
  const fits = ({ text }: StandingMessage) =>
    typeof what.text === 'string' ? text === what.text : what.text.test(text);
  return telegram.waitFor(() => telegram.botMessages(what.chat).find(fits), deadlineMs);
}
