/**
 * The gateway: one socket after another, and one session across as many of them as Discord allows. It reports each
 * event as it came, and the moment a session is lost, because everything between then and the next session has to be
 * read from history. Only `close` ends it: after a refusal it keeps trying, slowly.
 */
import type { SessionInfo } from '@discordjs/ws';
import { ApplicationFlags, GatewayIntentBits } from 'discord.js';
import { remoteCount } from '#channel-kit/remote-number.ts';
import type { ChannelDeps, ChannelTrouble } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { DiscordApi } from './api.ts';
import {
  allSpent,
  type ConnectFailure,
  countFailure,
  failureOfEnd,
  failureOfFault,
  noFailures,
  pauseAfter,
  troubleOf,
} from './connect-failure.ts';
import { waitUntil } from './deadline.ts';
import { readGatewayUrl } from './gateway-frame.ts';
import type { Dispatch } from './inbound.ts';
import { gatewayBotSchema } from './payload-schema.ts';
import { GatewaySocket, type SocketEnd } from './socket.ts';

export type GatewayDeps = Pick<ChannelDeps, 'clock' | 'log'> & {
  readonly api: Pick<DiscordApi, 'gatewayBot' | 'application'>;
  readonly token: string;
  readonly pace: IdentifyPace;
  onDispatch(dispatch: Dispatch): void;
  /** No events are reported between now and the next READY. */
  onSessionLost(): void;
  /** Called with undefined whenever events start to flow. */
  onTrouble(problem: ChannelTrouble | undefined): void;
};

/** A longer pause, ms, is shown with its end. */
const longPauseMs = 30_000;
/** A shorter interruption, ms, isn't reported. */
const graceMs = 5_000;
/** Events that flowed for less, ms, don't prove that all is well, so the pauses keep growing. */
const steadyMs = 60_000;
/** How many resumes may fail while Discord answers; after that, the address or the session itself may be gone. */
const maxResumes = 3;
/** How often to check whether the privileged intent has been granted, ms. */
const contentLookMs = 15 * 60_000;

export class Gateway {
  readonly #deps: GatewayDeps;
  readonly #stopped = new AbortController();
  readonly #begun = Promise.withResolvers<void>();
  #socket: GatewaySocket | undefined;
  #session: SessionInfo | undefined;
  #resumes = 0;
  /** The developer portal doesn't allow message content; until it does, the bot runs without it. */
  #isContentRefused = false;
  /** Why no events flow; undefined while they do. */
  #failure: ConnectFailure | undefined;
  /** When Discord is dialled again, if that isn't soon. */
  #nextTryAt: number | undefined;
  /** Aborted when events flow, or when the trouble is reported. */
  #blink: AbortController | undefined;

  constructor(deps: GatewayDeps) {
    this.#deps = deps;
  }

  /** Resolves when events flow, or once it is reported why they don't yet; from then on it recovers on its own. */
  async connect(): Promise<void> {
    void this.#run();
    await this.#begun.promise;
  }

  /** Stops reporting dispatches. Resolves when the connection is closed. */
  async close(): Promise<void> {
    this.#stopped.abort();
    this.#begun.resolve();
    this.#blink?.abort();
    this.#socket?.close('Parley is stopping', 'over');
    await this.#socket?.closed;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#deps;
    const { signal } = this.#stopped;
    let consecutiveFailures = noFailures;
    while (!signal.aborted) {
      const { failure, connectedMs = 0 } = await this.#once();
      if (signal.aborted) return;
      consecutiveFailures = countFailure(connectedMs >= steadyMs ? noFailures : consecutiveFailures, failure);
      if (failure.kind === 'intents-refused' && this.#continueWithoutContent()) continue;
      const pauseMs = pauseAfter(failure, consecutiveFailures);
      log.info({ reason: failure.detail, pauseMs }, 'discord.gateway-interrupted');
      this.#interrupted(failure, pauseMs);
      await clock.wait(pauseMs, signal);
    }
  }

  /** Runs one socket, from dialling to its end. */
  async #once(): Promise<{ readonly failure: ConnectFailure; readonly connectedMs?: number | undefined }> {
    const address = await this.#address();
    if (typeof address !== 'string') return { failure: address };
    if (this.#stopped.signal.aborted) return { failure: { kind: 'unreachable', detail: 'stopped' } };
    const end = await this.#hold(address);
    await this.#judge(end);
    return { failure: failureOfEnd(end), connectedMs: end.connectedMs };
  }

  /** Returns where to dial: a session has its own address; for a new one Discord is asked, once the pace allows. */
  async #address(): Promise<string | ConnectFailure> {
    const { clock, log, pace } = this.#deps;
    if (this.#session !== undefined) return this.#session.resumeURL;
    const { waitMs } = pace;
    if (waitMs > graceMs) log.warn({ waitMs, today: pace.today }, 'discord.sessions-delayed');
    if (waitMs > graceMs)
      this.#interrupted({ kind: 'unreachable', detail: 'too many sessions were started today' }, waitMs);
    if (waitMs > 0) await clock.wait(waitMs, this.#stopped.signal);
    return this.#askForAddress();
  }

  async #askForAddress(): Promise<string | ConnectFailure> {
    try {
      const answer = await this.#deps.api.gatewayBot(this.#stopped.signal);
      const { url, session_start_limit: limits } = gatewayBotSchema.parse(answer);
      if (limits?.remaining !== undefined && remoteCount(limits.remaining) === 0)
        return allSpent(limits.reset_after);
      return readGatewayUrl(url) ?? { kind: 'unreachable', detail: 'Discord gave no gateway address' };
    } catch (error) {
      return failureOfFault(error);
    }
  }

  async #hold(url: string): Promise<SocketEnd> {
    const { token, clock, pace, log, onDispatch } = this.#deps;
    const intents = this.#isContentRefused ? basicIntents : basicIntents | contentIntent;
    const socket = new GatewaySocket({
      ...{ url, token, intents, clock },
      session: this.#session,
      onIdentify: () => {
        pace.note();
        log.info({ today: pace.today }, 'discord.session-wanted');
      },
      onSession: (session) => {
        this.#session = session;
      },
      onActivity: () => this.#recovered(),
      onDispatch: (dispatch) => {
        if (!this.#stopped.signal.aborted) onDispatch(dispatch);
      },
    });
    this.#socket = socket;
    if (this.#isContentRefused) void this.#awaitContent(socket);
    return socket.ended;
  }

  async #judge({ session, connectedMs, code, reason }: SocketEnd): Promise<void> {
    if (this.#stopped.signal.aborted) return;
    this.#deps.log.info({ code, reason, connectedMs }, 'discord.socket-closed');
    this.#resumes = connectedMs === undefined ? this.#resumes + 1 : 0;
    if (this.#session === undefined || (session === 'kept' && !(await this.#isAddressGone()))) return;
    if (this.#stopped.signal.aborted) return;
    this.#session = undefined;
    this.#resumes = 0;
    this.#deps.onSessionLost();
  }

  /** In an outage Discord answers nowhere, so the address isn't to blame, and the session may be resumed afterwards. */
  async #isAddressGone(): Promise<boolean> {
    if (this.#resumes < maxResumes) return false;
    const answer = await this.#askForAddress();
    return typeof answer === 'string' || answer.kind !== 'unreachable';
  }

  /** Returns false if that was already tried. The switch can be turned off while the bot is connected. */
  #continueWithoutContent(): boolean {
    if (this.#isContentRefused) return false;
    this.#isContentRefused = true;
    this.#deps.log.warn(
      { fix: 'turn on Message Content Intent on the Bot page of the Discord developer portal' },
      'discord.message-content-missed',
    );
    return true;
  }

  /** Starts a new session with the intent once it is granted. */
  async #awaitContent(socket: GatewaySocket): Promise<void> {
    const { api, clock, log } = this.#deps;
    const over = new AbortController();
    void socket.ended.then(() => over.abort());
    while (!over.signal.aborted) {
      await waitUntil(clock, clock.now() + contentLookMs, over.signal);
      if (over.signal.aborted) return;
      const isGranted = await api.application(over.signal).then(isContentGranted, () => false);
      if (!isGranted || over.signal.aborted) continue;
      log.info({}, 'discord.message-content-granted');
      this.#isContentRefused = false;
      socket.close('Message Content was granted', 'over');
    }
  }

  /** Reports the trouble immediately if it will last, and after `graceMs` if it may be over by then. */
  #interrupted(failure: ConnectFailure, pauseMs: number): void {
    const isReported = this.#failure !== undefined && this.#blink === undefined;
    this.#failure = failure;
    this.#nextTryAt = pauseMs > longPauseMs ? this.#deps.clock.now() + pauseMs : undefined;
    if (failure.kind === 'refused' || failure.kind === 'unauthorised' || isReported) this.#report();
    else if (this.#blink === undefined) void this.#reportLater();
  }

  async #reportLater(): Promise<void> {
    const blink = new AbortController();
    this.#blink = blink;
    await this.#deps.clock.wait(graceMs, blink.signal);
    if (!blink.signal.aborted) this.#report();
  }

  #report(): void {
    this.#blink?.abort();
    this.#blink = undefined;
    if (this.#failure === undefined || this.#stopped.signal.aborted) return;
    const nextTryAt = this.#nextTryAt;
    this.#deps.onTrouble({ ...troubleOf(this.#failure), ...(nextTryAt !== undefined && { nextTryAt }) });
    this.#begun.resolve();
  }

  #recovered(): void {
    this.#blink?.abort();
    this.#blink = undefined;
    this.#failure = undefined;
    this.#deps.onTrouble(undefined);
    this.#begun.resolve();
  }
}

/**
 * Discord requires five seconds between new sessions and allows a thousand a day; a bot that starts more loses its
 * token. The count is kept for the adapter's lifetime, however often it is started.
 */
const dayMs = 24 * 3_600_000;
const gapMs = 5_000;
/** A healthy day has a handful. From this many on, something is wrong, and the longer gap allows 720 a day. */
const manyADay = 100;
const gapOfManyMs = 120_000;

export class IdentifyPace {
  readonly #clock: Clock;
  #times: number[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How long the next session has to wait, ms. */
  get waitMs(): number {
    const latest = this.#times.at(-1);
    if (latest === undefined) return 0;
    const gap = this.today < manyADay ? gapMs : gapOfManyMs;
    return Math.min(gap, Math.max(0, latest + gap - this.#clock.now()));
  }

  /** How many sessions were started in the last 24 hours. */
  get today(): number {
    const since = this.#clock.now() - dayMs;
    this.#times = this.#times.filter((time) => time > since);
    return this.#times.length;
  }

  note(): void {
    this.#times.push(this.#clock.now());
  }
}

/** Intents that the bot asks for, and those it can run without. */
const basicIntents =
  GatewayIntentBits.Guilds |
  GatewayIntentBits.GuildMessages |
  GatewayIntentBits.GuildMessageReactions |
  GatewayIntentBits.GuildMessagePolls |
  GatewayIntentBits.DirectMessages |
  GatewayIntentBits.DirectMessageReactions |
  GatewayIntentBits.DirectMessagePolls;

/** Privileged: without it, guild messages that don't mention the bot arrive without their text. */
const contentIntent = GatewayIntentBits.MessageContent;

/** Flags of an application: granted, and granted below 100 guilds (or whatever limit replaces that). */
const contentFlags = ApplicationFlags.GatewayMessageContent | ApplicationFlags.GatewayMessageContentLimited;

/** Says whether the developer portal allows the privileged intent. */
export function isContentGranted({ flags }: { readonly flags: number }): boolean {
  return (flags & contentFlags) !== 0;
}
