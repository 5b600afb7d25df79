import { join } from 'node:path';
import { channelUnavailable } from '#channel-kit/network-fault.ts';
import { startAndStop } from '#channel-kit/start-and-stop.ts';
import type { BotAccount, ChannelAdapter, ChannelDeps, Intake } from '#contracts/channel.ts';
import type {
  ChecksAbility,
  CommandsAbility,
  LookupAbility,
  MediaAbility,
  NativeCommand,
  TypingAbility,
} from '#contracts/channel-abilities.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Outbound, SendResult } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { DiscordApi } from './api.ts';
import { checkAccount } from './checks.ts';
import type { DiscordConfig } from './config.ts';
import { tokenRefused } from './connect-failure.ts';
import { readRefusal, reasonOf } from './failures.ts';
import { IdentifyPace } from './gateway.ts';
import { type Bot, botOf, isSnowflake } from './ids.ts';
import { InteractionTokens } from './interaction-tokens.ts';
import { Interactions } from './interactions.ts';
import { fetchMedia } from './media.ts';
import { targetOf } from './outbound.ts';
import { Receiver } from './receiver.ts';
import { Sender } from './sender.ts';
import { passOver, toApplicationCommands } from './slash-commands.ts';

/** Discord shows the typing indicator for 10 s, so it is renewed a little earlier, ms. */
const typingRefreshMs = 8000;

type Connection = { readonly bot: Bot; readonly sender: Sender; readonly interactions: Interactions };

/** Holds the connection to one bot account. */
export class DiscordAdapter implements ChannelAdapter {
  readonly #config: DiscordConfig;
  readonly #deps: ChannelDeps;
  readonly #api: DiscordApi;
  readonly #pace: IdentifyPace;
  readonly #receiving = startAndStop({
    begin: (intake, signal) => this.#begin(intake, signal),
    end: () => this.#end(),
  });
  readonly start = this.#receiving.start;
  readonly stop = this.#receiving.stop;
  #connection: Connection | undefined;
  #receiver: Receiver | undefined;

  constructor(config: DiscordConfig, deps: ChannelDeps) {
    this.#config = config;
    this.#deps = deps;
    this.#api = new DiscordApi(config);
    this.#pace = new IdentifyPace(deps.clock);
  }

  readonly typing: TypingAbility = {
    refreshMs: typingRefreshMs,
    show: (route, signal) => this.#showTyping(route, signal),
  };

  readonly media: MediaAbility = {
    fetch: (ref, maxBytes, signal) => {
      const { apiBase } = this.#config;
      return fetchMedia({ apiBase, api: this.#api }, { ref, maxBytes, signal });
    },
  };

  readonly commands: CommandsAbility = {
    register: (commands, signal) => this.#register(commands, signal),
  };

  readonly lookup: LookupAbility = {
    find: (outbound, since, signal) => this.#connected().sender.find(outbound, since, signal),
  };

  readonly checks: ChecksAbility = {
    check: (signal) => checkAccount(this.#api, signal),
  };

  async identify(signal: AbortSignal): Promise<BotAccount> {
    try {
      const bot = botOf(await this.#api.me(signal));
      const { log, clock, dataDir } = this.#deps;
      const path = join(dataDir, `interactions-${bot.id}`);
      const tokens = await InteractionTokens.open({ path, clock, log });
      const interactions = new Interactions({ api: this.#api, bot, clock, log, tokens });
      const sender = new Sender({ api: this.#api, bot, interactions, log });
      this.#connection = { bot, sender, interactions };
      log.info({ account: bot.account, username: bot.name }, 'discord.identified');
      return { id: bot.account, name: bot.name };
    } catch (error) {
      throw identityFault(error);
    }
  }

  async #begin(intake: Intake, signal: AbortSignal): Promise<void> {
    const { bot, interactions } = this.#connected();
    const deps = { ...this.#deps, config: this.#config, api: this.#api, bot, interactions, pace: this.#pace };
    this.#receiver = await Receiver.start(deps, intake, signal);
  }

  async #end(): Promise<void> {
    this.#connection?.interactions.stop();
    await this.#receiver?.stop();
    this.#receiver = undefined;
  }

  async send(outbound: Outbound, signal: AbortSignal): Promise<SendResult> {
    if (signal.aborted) return { kind: 'retry', afterMs: 0, reason: 'stopped before it was sent' };
    return this.#connected().sender.send(outbound, signal);
  }

  async #showTyping(route: ReplyRoute, signal: AbortSignal): Promise<void> {
    const channel = targetOf(route);
    if (isSnowflake(channel)) await this.#api.type(channel, signal);
  }

  async #register(commands: readonly NativeCommand[], signal: AbortSignal): Promise<void> {
    const wanted = toApplicationCommands(commands);
    try {
      // An application has its bot's id unless it predates 2016, so Discord's answer comes first.
      const { bot } = this.#connected();
      const application = (await this.#api.application(signal).catch(passOver))?.id ?? bot.id;
      await this.#api.setCommands(application, wanted, signal);
    } catch (error) {
      throw callFault(error, 'the slash commands could not be set');
    }
  }

  #connected(): Connection {
    if (this.#connection === undefined) throw new ParleyError('internal', 'discord: used before identify()');
    return this.#connection;
  }
}

function identityFault(error: unknown): ParleyError {
  if (readRefusal(error)?.status !== 401) return callFault(error, 'Discord could not be reached');
  return new ParleyError('channel_unauthorised', tokenRefused);
}

function callFault(error: unknown, what: string): ParleyError {
  const afterMs = readRefusal(error)?.retryAfterMs;
  return channelUnavailable(`${what}: ${reasonOf(error)}`, { afterMs });
}
