import { systemClock } from '#channel-kit/system-clock.ts';
import type { ChannelDeps } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import { accountId, channelId, conversationId } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { TelegramAdapter } from '../../../channels/telegram/adapter.ts';
import { channel } from '../../../channels/telegram/index.ts';
import type { Span } from '../../../src/contracts/formatted-text.ts';
import { outboundFetch } from '../../../src/http/outbound-fetch.ts';
import type { TelegramServer } from '../../platforms/telegram/server.ts';
import type { TgEntity, TgUser } from '../../platforms/telegram/types.ts';
import { silentLog } from '../../support/silent-log.ts';

export const ada: TgUser = { id: 501, is_bot: false, first_name: 'Ada', last_name: 'L', username: 'ada_l' };
export const bob: TgUser = { id: 502, is_bot: false, first_name: 'Bob' };

/** Real time, but pauses last 10 ms at most, so that backing off doesn't slow the tests down. */
export const hastyClock: Clock = {
  now: systemClock.now,
  wait: (ms, signal) => systemClock.wait(Math.min(ms, 10), signal),
};

export function newAdapter(
  server: TelegramServer,
  options: {
    readonly token?: string;
    readonly clock?: Clock;
    readonly log?: Log;
    readonly pollSeconds?: number;
  } = {},
) {
  const deps: ChannelDeps = {
    log: options.log ?? silentLog,
    fetch: outboundFetch,
    clock: options.clock ?? hastyClock,
    dataDir: '/nonexistent',
  };
  const config = channel.configSchema.parse({
    token: options.token ?? server.token,
    apiRoot: server.apiRoot,
    pollSeconds: options.pollSeconds ?? 5,
    callTimeoutMs: 5000,
  });
  return channel.create(config, deps) as TelegramAdapter;
}

export function routeTo(server: TelegramServer, chat: number): ReplyRoute {
  return {
    channel: channelId('telegram'),
    account: accountId(String(server.bot.id)),
    conversation: conversationId(String(chat)),
  };
}

const kinds: Readonly<Record<string, Span['kind']>> = {
  bold: 'bold',
  italic: 'italic',
  underline: 'underline',
  strikethrough: 'strikethrough',
  spoiler: 'spoiler',
  code: 'code',
  blockquote: 'quote',
  text_link: 'link',
  pre: 'code-block',
};

/** Converts the platform's entities to the spans of the contract, leaving out computed ones. */
export function spansOf(entities: readonly TgEntity[]): readonly Span[] {
  return entities.flatMap(({ type, offset: start, length, url, language }) => {
    const kind = kinds[type];
    if (kind === undefined) return [];
    const extra = { ...(url === undefined ? {} : { url }), ...(language === undefined ? {} : { language }) };
    return [{ kind, start, length, ...extra } as Span];
  });
}
