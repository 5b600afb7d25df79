/**
 * The gateway's socket: one session at a time, resumed where that is possible. It tells of each event as
 * it came, and of the moment a session is lost, because everything between that and the next one has to
 * be read from history.
 */
import type { REST } from '@discordjs/rest';
import { type SessionInfo, WebSocketManager, WebSocketShardEvents } from '@discordjs/ws';
import type { ChannelTrouble } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import { hasCode, ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import { networkReason, readRefusal } from './failures.ts';
import type { Dispatch } from './inbound.ts';

export type GatewayDeps = {
  readonly rest: REST;
  readonly token: string;
  readonly clock: Clock;
  readonly log: Log;
  onDispatch(dispatch: Dispatch): void;
  /** What happens from now on until the next READY is told by nobody. */
  onSessionLost(): void;
  onTrouble(problem: ChannelTrouble | undefined): void;
};

const intents = {
  guilds: 1 << 0,
  guildMessages: 1 << 9,
  guildMessageReactions: 1 << 10,
  directMessages: 1 << 12,
  directMessageReactions: 1 << 13,
} as const;
const always = Object.values(intents).reduce((sum, bit) => sum | bit, 0);
/** Privileged: without it guild messages that do not mention the bot come without their text. */
const messageContent = 1 << 15;

/** After these Discord wants no further try with the same settings. */
const closeCodes = { authenticationFailed: 4004, disallowedIntents: 4014 } as const;
const finalCloseCodes = new Set([4004, 4010, 4011, 4012, 4013, 4014]);

/** A blink is no trouble; the library resumes by itself within a second or two. */
const blinkMs = 5_000;
/** Discord wants this long between two identifies. */
const identifyPauseMs = 5_000;
const firstPauseMs = 1_000;
const longestPauseMs = 60_000;
const closingMs = 2_000;
const readyPatienceMs = 30_000;

export class Gateway {
  readonly #deps: GatewayDeps;
  readonly #stopped = new AbortController();
  #manager: WebSocketManager | undefined;
  #session: SessionInfo | null = null;
  #isTold = false;
  #isOpen = false;
  #waiting: AbortController | undefined;

  constructor(deps: GatewayDeps) {
    this.#deps = deps;
  }

  /** Resolves at READY. Throws ParleyError `channel_unauthorised` or `channel_unavailable`. */
  async connect(): Promise<void> {
    try {
      await this.#open(always | messageContent);
    } catch (error) {
      if (!(error instanceof IntentsRefused)) throw error;
      this.#deps.log.warn(
        { fix: 'switch on Message Content Intent on the Bot page of the Discord developer portal' },
        'discord.without_message_content',
      );
      await this.#open(always);
    }
  }

  /** No dispatch is told after it has been called. */
  async close(): Promise<void> {
    this.#stopped.abort();
    await this.#destroy();
  }

  async #destroy(): Promise<void> {
    this.#waiting?.abort();
    const manager = this.#manager;
    this.#manager = undefined;
    if (manager === undefined) return;
    // The other side may never close its half; the process must not wait for it.
    await Promise.race([
      Promise.resolve(manager.destroy({ reason: 'Parley is stopping' })).catch(() => undefined),
      this.#deps.clock.wait(closingMs),
    ]);
  }

  async #open(wanted: number): Promise<void> {
    const manager = this.#newManager(wanted);
    this.#manager = manager;
    const refused = Promise.withResolvers<never>();
    // Nobody may be waiting any more when it comes.
    refused.promise.catch(() => undefined);
    manager.on(WebSocketShardEvents.Closed, ({ code }) => {
      if (this.#manager === manager) this.#closed(code, refused.reject);
    });
    manager.on(WebSocketShardEvents.Error, ({ error }) => {
      this.#deps.log.debug({ reason: networkReason(error) }, 'discord.socket_error');
    });
    for (const event of [WebSocketShardEvents.Ready, WebSocketShardEvents.Resumed] as const)
      manager.on(event, () => this.#recovered());
    manager.on(WebSocketShardEvents.Dispatch, ({ data }) => {
      if (this.#manager === manager && !this.#stopped.signal.aborted) this.#deps.onDispatch(data);
    });
    try {
      await Promise.race([manager.connect(), refused.promise, tooLate()]);
      this.#isOpen = true;
    } catch (error) {
      await this.#destroy();
      throw connectFault(error);
    }
  }

  #newManager(wanted: number): WebSocketManager {
    const { rest, token, clock } = this.#deps;
    let nextIdentifyAt = 0;
    return new WebSocketManager({
      rest,
      token,
      intents: wanted,
      shardCount: 1,
      // The library's own store is shared by all bots of a process.
      retrieveSessionInfo: () => (this.#stopped.signal.aborted ? never : this.#session),
      updateSessionInfo: (_shard, session) => {
        if (session === null && this.#session !== null) this.#deps.onSessionLost();
        this.#session = session;
      },
      buildIdentifyThrottler: async () => ({
        waitForIdentify: async (_shard, signal) => {
          const pauseMs = nextIdentifyAt - clock.now();
          if (pauseMs > 0) await clock.wait(pauseMs, signal);
          nextIdentifyAt = clock.now() + identifyPauseMs;
        },
      }),
    });
  }

  #closed(code: number, refuse: (error: unknown) => void): void {
    const { log, onTrouble } = this.#deps;
    if (this.#stopped.signal.aborted) return;
    log.info({ code }, 'discord.socket_closed');
    if (!finalCloseCodes.has(code)) this.#reportLater();
    else if (code === closeCodes.disallowedIntents) this.#intentsRefused(refuse);
    else if (code === closeCodes.authenticationFailed) {
      refuse(unauthorised());
      onTrouble({ kind: 'unauthorised', detail: unauthorised().message });
    } else {
      const detail = `Discord closed the gateway for good (${code})`;
      refuse(new ParleyError('channel_unavailable', detail, { retry: { kind: 'later' } }));
      onTrouble({ kind: 'unreachable', detail });
    }
  }

  /** The switch can be turned off while the bot is connected. */
  #intentsRefused(refuse: (error: unknown) => void): void {
    if (!this.#isOpen) {
      refuse(new IntentsRefused());
      return;
    }
    this.#isOpen = false;
    void this.#openAgain();
  }

  async #openAgain(): Promise<void> {
    const { clock, onTrouble } = this.#deps;
    const { signal } = this.#stopped;
    for (let pauseMs = firstPauseMs; !signal.aborted; pauseMs = Math.min(longestPauseMs, pauseMs * 2)) {
      try {
        await this.connect();
        return;
      } catch (error) {
        if (signal.aborted) return;
        const isFinal = hasCode(error, 'channel_unauthorised');
        const detail = error instanceof Error ? error.message : String(error);
        this.#isTold = true;
        onTrouble({ kind: isFinal ? 'unauthorised' : 'unreachable', detail });
        if (isFinal) return;
        await clock.wait(pauseMs, signal);
      }
    }
  }

  #reportLater(): void {
    if (this.#waiting !== undefined) return;
    const waiting = new AbortController();
    this.#waiting = waiting;
    void this.#deps.clock.wait(blinkMs, waiting.signal).then(() => {
      if (waiting.signal.aborted || this.#stopped.signal.aborted) return;
      this.#isTold = true;
      this.#deps.onTrouble({
        kind: 'unreachable',
        detail: 'the connection to Discord’s gateway is interrupted',
      });
    });
  }

  #recovered(): void {
    this.#waiting?.abort();
    this.#waiting = undefined;
    if (this.#isTold) this.#deps.onTrouble(undefined);
    this.#isTold = false;
  }
}

/** Stops the library's own reconnecting, which `destroy` does not end while it pauses between two tries. */
const never = new Promise<null>(() => undefined);

class IntentsRefused extends Error {}

async function tooLate(): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  const detail = 'Discord’s gateway did not answer in time';
  const fault = new ParleyError('channel_unavailable', detail, { retry: { kind: 'later' } });
  setTimeout(() => reject(fault), readyPatienceMs).unref();
  return promise;
}

function unauthorised(): ParleyError {
  return new ParleyError(
    'channel_unauthorised',
    'Discord refused the bot token; reset it on the Bot page of the developer portal and set DISCORD_BOT_TOKEN',
  );
}

function connectFault(error: unknown): Error {
  if (error instanceof ParleyError || error instanceof IntentsRefused) return error;
  const refusal = readRefusal(error);
  if (refusal?.status === 401) return unauthorised();
  const why = refusal?.reason ?? networkReason(error);
  const afterMs = refusal?.retryAfterMs;
  const retry = { kind: 'later', ...(afterMs === undefined ? {} : { afterMs }) } as const;
  return new ParleyError('channel_unavailable', `Discord’s gateway could not be reached: ${why}`, { retry });
}
