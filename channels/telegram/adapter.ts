import { channelUnavailable } from '#channel-kit/network-fault.ts';
import { failed, sent, sizesOf } from '#channel-kit/send-result.ts';
import { startAndStop } from '#channel-kit/start-and-stop.ts';
import { withLimit } from '#channel-kit/with-limit.ts';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { BotAccount, ChannelAdapter, ChannelDeps, Intake } from '#contracts/channel.ts';
import type {
  CommandsAbility,
  MediaAbility,
  NativeCommand,
  PreviewAbility,
  TypingAbility,
} from '#contracts/channel-abilities.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Outbound, SendResult } from '#contracts/outbound.ts';
import { AdminLookup } from './admins.ts';
import { type BotClient, connectBot } from './bot-api.ts';
import type { TelegramConfig } from './config.ts';
import { failureOf, readRefusal, reasonOf } from './failures.ts';
import { Identity } from './identity.ts';
import { fetchMedia } from './media.ts';
import { type Call, toCall } from './outbound.ts';
import { type Poll, startPoll } from './poll.ts';
import { Presence } from './presence.ts';
import { answerPresses, type PressDeps } from './presses.ts';
import { sendAlbum, sendFile } from './uploads.ts';

/** Telegram shows the typing indicator for 5 s, so it is renewed a little earlier, ms. */
const typingRefreshMs = 4000;

type Connection = BotClient & { readonly identity: Identity };

/** Holds the connection to one bot account. */
export class TelegramAdapter implements ChannelAdapter {
  readonly #config: TelegramConfig;
  readonly #deps: ChannelDeps;
  readonly #presence: Presence;
  readonly #admins: AdminLookup;
  readonly #contest = { isOn: false };
  readonly #presses: PressDeps;
  readonly #receiving = startAndStop({
    begin: (intake) => this.#begin(intake),
    end: () => this.#end(),
  });
  readonly start = this.#receiving.start;
  readonly stop = this.#receiving.stop;
  #connection: Connection | undefined;
  #poll: Poll | undefined;

  constructor(config: TelegramConfig, deps: ChannelDeps) {
    this.#config = config;
    this.#deps = deps;
    const { clock, log } = deps;
    const api = () => this.#connected().api;
    this.#presence = new Presence({ api, clock, log });
    this.#admins = new AdminLookup({ api, clock });
    this.#presses = { api, log, callTimeoutMs: config.callTimeoutMs };
  }

  readonly typing: TypingAbility = {
    refreshMs: typingRefreshMs,
    show: (route, signal) => this.#limited(signal, (limited) => this.#presence.showTyping(route, limited)),
  };

  readonly preview: PreviewAbility = {
    draft: (route, draftId, text, signal) =>
      this.#limited(signal, (limited) => this.#presence.draft(route, draftId, text, limited)),
  };

  readonly media: MediaAbility = {
    fetch: (ref, maxBytes, signal) => this.#fetch(ref, maxBytes, signal),
  };

  readonly commands: CommandsAbility = {
    register: (commands, signal) => this.#limited(signal, (limited) => this.#register(commands, limited)),
  };

  async identify(signal: AbortSignal): Promise<BotAccount> {
    const client = await connectBot(this.#config, this.#deps.fetch);
    try {
      const me = await this.#limited(signal, (limited) => client.api.getMe(limited));
      // The id identifies the account forever, in stored rows too.
      if (!Number.isSafeInteger(me?.id) || me.id <= 0) throw new Error('the server there isn’t the Bot API');
      const identity = new Identity(me, { ...this.#deps, api: client.api });
      this.#connection = { ...client, identity };
      return { id: identity.bot.account, name: identity.name };
    } catch (error) {
      throw identityFault(error);
    }
  }

  async #begin(intake: Intake): Promise<void> {
    const { api, identity } = this.#connected();
    this.#poll = startPoll(
      {
        ...this.#deps,
        api,
        identity,
        pollSeconds: this.#config.pollSeconds,
        contest: this.#contest,
        enrich: (events, signal) => this.#admins.annotate(events, signal),
        onStored: (events, acceptances) => answerPresses(this.#presses, events, acceptances),
      },
      intake,
    );
  }

  async #end(): Promise<void> {
    await this.#poll?.stop();
    this.#poll = undefined;
  }

  async send(outbound: Outbound, signal: AbortSignal): Promise<SendResult> {
    if (signal.aborted) return { kind: 'retry', afterMs: 0, reason: 'stopped before it was sent' };
    const { content } = outbound;
    const sizes = await sizesOf(content);
    if (sizes === undefined) return failed('rejected', 'the file to send cannot be read');
    const call = toCall(outbound, sizes);
    if (call.method === 'none') return failed('rejected', call.reason);
    try {
      return await this.#limited(signal, (limited) => this.#perform(call, limited));
    } catch (error) {
      const result = failureOf(error, content, signal.aborted);
      this.#deps.log.info(
        { partKey: outbound.key, method: call.method, result: result.kind },
        'telegram.send-failed',
      );
      return result;
    }
  }

  async #perform(call: Exclude<Call, { method: 'none' }>, signal: AbortSignal): Promise<SendResult> {
    const connection = this.#connected();
    const { api } = connection;
    switch (call.method) {
      case 'sendMessage':
        return shown(await api.sendMessage(call.payload, signal));
      case 'sendPhoto':
      case 'sendVideo':
      case 'sendAnimation':
      case 'sendAudio':
      case 'sendVoice':
      case 'sendDocument':
        return shown(await sendFile(connection, call, signal));
      case 'sendMediaGroup':
        return shown(...(await sendAlbum(connection, call, signal)));
      case 'editMessageCaption':
        await api.editMessageCaption(call.payload, signal);
        return shown(call.payload);
      case 'editMessageText':
        await api.editMessageText(call.payload, signal);
        return shown(call.payload);
      case 'sendPoll':
        return shown(await api.sendPoll(call.payload, signal));
      case 'pinChatMessage':
        await api.pinChatMessage(call.payload, signal);
        return sent();
      case 'unpinChatMessage':
        await api.unpinChatMessage(call.payload, signal);
        return sent();
      case 'deleteMessage':
        await api.deleteMessage(call.payload, signal);
        return sent();
      case 'setMessageReaction':
        await api.setMessageReaction(call.payload, signal);
        return sent();
      default:
        return call satisfies never;
    }
  }

  #fetch(ref: AttachmentRef, maxBytes: number, signal: AbortSignal): AsyncIterable<Uint8Array> {
    const { apiRoot, token } = this.#config;
    const getFile = (fileId: string, ends: AbortSignal) =>
      this.#limited(ends, (limited) => this.#connected().api.getFile({ file_id: fileId }, limited));
    return fetchMedia({ apiRoot, token, getFile }, { ref, maxBytes, signal });
  }

  /** The host only calls this for a changed list: other bots that set it at every start were banned for minutes. */
  async #register(commands: readonly NativeCommand[], signal: AbortSignal): Promise<void> {
    const { api } = this.#connected();
    const wanted = commands
      .filter(({ name }) => /^[a-z0-9_]{1,32}$/.test(name))
      .slice(0, 100)
      .map(({ name, description }) => ({ command: name, description: description.slice(0, 256) || name }));
    try {
      await api.setMyCommands({ commands: wanted }, signal);
    } catch (error) {
      throw callFault(error, 'the list of commands could not be set');
    }
  }

  #connected(): Connection {
    if (this.#connection === undefined) throw new ParleyError('internal', 'telegram: used before identify()');
    return this.#connection;
  }

  #limited<T>(signal: AbortSignal, call: (limited: AbortSignal) => Promise<T>): Promise<T> {
    return withLimit(this.#config.callTimeoutMs, signal, call);
  }
}

function shown(...messages: readonly { readonly message_id: number }[]): SendResult {
  return sent(...messages.map(({ message_id: id }) => String(id)));
}

function identityFault(error: unknown): ParleyError {
  const code = readRefusal(error)?.code;
  if (code !== 401 && code !== 404) return callFault(error, 'Telegram could not be reached');
  return new ParleyError(
    'channel_unauthorised',
    'Telegram refused the bot token; ask @BotFather for a new one and set TELEGRAM_BOT_TOKEN',
  );
}

function callFault(error: unknown, what: string): ParleyError {
  return channelUnavailable(`${what}: ${reasonOf(error)}`, { afterMs: readRefusal(error)?.askedWaitMs });
}
