import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { WebSocketServer } from 'ws';
import { Door } from '../shared/door.ts';
import { Probes } from '../shared/probes.ts';
import { answerCall, type Reply } from './answer.ts';
import { download } from './cdn.ts';
import { Events } from './events.ts';
import { type Fault, type FaultMatch, Faults } from './faults.ts';
import { Gateway } from './gateway.ts';
import { intents, type Privileged } from './intents.ts';
import { type Interaction, Interactions } from './interactions.ts';
import { People, type UserMessage } from './people.ts';
import { Places } from './places.ts';
import type { Platform } from './platform.ts';
import { visibleMessages } from './posting.ts';
import { RateLimiter, type Rates, wideRates } from './rates.ts';
import { application, memberships } from './routes-account.ts';
import type { Call, DiscordUser, Ping, Refusal, StandingMessage, Typing } from './types.ts';
import { Renderer } from './wire.ts';
import { World } from './world.ts';

export type DiscordServerOptions = {
  readonly token?: string;
  readonly botName?: string;
  /** The platform's clock, for ids, ages and the 3 seconds. Default: the real one. */
  readonly now?: () => number;
  /** What the developer portal allows. Default: MessageContent and members, but not presences. */
  readonly privileged?: Partial<Privileged>;
  readonly rates?: Rates;
  /** Default: 41,250, as Discord requests. */
  readonly heartbeatIntervalMs?: number;
  /** How long a session without a socket can be resumed. Default: 3 minutes. */
  readonly sessionLifetimeMs?: number;
  /** How long `enforce_nonce` remembers. Default: 3 minutes. */
  readonly nonceWindowMs?: number;
  /** Discord wants 5,000 ms between two identifies. Default: 0, for tests that restart the bot. */
  readonly identifyIntervalMs?: number;
};

/** Starts a Discord server, REST v10 and gateway v10, on its own loopback port. */
export async function startDiscordServer(options: DiscordServerOptions = {}): Promise<DiscordServer> {
  const server = new DiscordServer(options);
  await server.comeBack();
  return server;
}

/** Discord as seen by a bot, with a test's controls for the other side. */
export class DiscordServer {
  readonly bot: DiscordUser;
  readonly world: World;
  readonly gateway: Gateway;
  readonly interactions: Interactions;
  readonly platform: Platform;
  /** What people write and press: `server.people.sends({ from, text })`. */
  readonly people: People;
  /** What people do with guilds, channels and threads. */
  readonly places: Places;
  /** Every call of the REST API, in order of arrival. */
  readonly calls: Call[] = [];
  /** Every call and every gateway payload that Discord would refuse; deliberate faults aren't among them. */
  readonly refusals: Refusal[] = [];
  /** Every message of the bot that really pings somebody. */
  readonly pings: Ping[] = [];
  readonly typing: Typing[] = [];
  /** The address that READY gives for resuming, if it isn't this server's. */
  resumeUrl: string | undefined;
  readonly #privileged: { messageContent: boolean };
  readonly #faults = new Faults();
  readonly #limiter: RateLimiter;
  readonly #webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  readonly #probes = new Probes(() => {
    const last = this.calls
      .slice(-8)
      .map(({ route, status, reason }) => `${route} ${status} ${reason ?? ''}`);
    return `last calls: ${last.join('; ')}`;
  });
  readonly #door = new Door({
    onRequest: (request, response, body) => void this.#serve(request, response, body),
    onUpgrade: (request, tcp, head) => {
      if (this.gateway.withheld.has('OPEN')) return;
      this.#webSockets.handleUpgrade(request, tcp, head, (webSocket) =>
        this.gateway.accept(webSocket, request),
      );
    },
  });
  #token: string;
  #isTokenRevoked = false;

  constructor(options: DiscordServerOptions) {
    const now = options.now ?? Date.now;
    this.world = new World(
      { id: '1100000000000000001', username: options.botName ?? 'parley', global_name: null, bot: true },
      now,
    );
    this.bot = this.world.bot;
    this.#token =
      options.token ?? `${Buffer.from(this.bot.id).toString('base64url')}.GparLy.test-token-0123456789abcdef`;
    const privileged = {
      messageContent: true,
      guildMembers: true,
      guildPresences: false,
      ...options.privileged,
    };
    this.#privileged = privileged;
    this.interactions = new Interactions(now);
    this.#limiter = new RateLimiter(options.rates ?? wideRates);
    this.gateway = new Gateway({
      now,
      // Some clients identify with the REST header's prefix, which Discord accepts.
      isToken: (token) => this.isToken(token.replace(/^Bot /, '')),
      privileged,
      heartbeatIntervalMs: options.heartbeatIntervalMs ?? 41_250,
      sessionLifetimeMs: options.sessionLifetimeMs ?? 180_000,
      identifyIntervalMs: options.identifyIntervalMs ?? 0,
      ready: () => this.#ready(),
      welcome: (session) => {
        if ((session.intents & intents.guilds) === 0) return;
        for (const guild of memberships(this.platform))
          if (session.serves(guild.id) && !guild.isUnavailable)
            this.gateway.tell(session, 'GUILD_CREATE', this.platform.render.guild(guild));
      },
      onChange: () => this.#probes.changed(),
      refuse: (what, code, reason) => this.refusals.push({ what, status: 0, code, reason }),
    });
    const { world, gateway } = this;
    const render = new Renderer(world, () => this.baseUrl);
    this.platform = {
      world,
      gateway,
      events: new Events({ world, gateway, render, now, privileged }),
      render,
      interactions: this.interactions,
      now,
      privileged,
      typing: this.typing,
      pings: this.pings,
      commands: new Map(),
      nonceWindowMs: options.nonceWindowMs ?? 180_000,
      gatewayUrl: () => `ws://127.0.0.1:${this.#door.port}/gateway`,
      identifiesLeft: () => 1000 - this.gateway.counts.identifies,
    };
    this.people = new People(this.platform);
    this.places = new Places(this.platform, this.people);
  }

  /** The token that is currently valid. */
  get token(): string {
    return this.#token;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.#door.port}`;
  }

  /** The variables by which Parley finds it. */
  get environment(): Readonly<Record<string, string>> {
    return { DISCORD_BOT_TOKEN: this.token, DISCORD_API_BASE: this.apiUrl };
  }

  /** The value for a client's `rest.api`. */
  get apiUrl(): string {
    return `${this.baseUrl}/api`;
  }

  /** The calls that post or change a message, refused ones included. */
  get sent(): readonly Call[] {
    const isSend = /^(POST|PATCH|DELETE) .*(\/messages|\/messages\/:message|\/callback|webhooks\/\S+:token)$/;
    return this.calls.filter((call) => isSend.test(call.route));
  }

  /** Short for `people.sends`. */
  userSends(message: UserMessage): StandingMessage {
    return this.people.sends(message);
  }

  /** Returns the messages in a channel that everyone can see, oldest first. */
  messages(channelId: string): readonly StandingMessage[] {
    const channel = this.world.channels.get(channelId);
    return channel === undefined ? [] : visibleMessages(channel);
  }

  /** Returns those of them that the bot wrote. */
  botMessages(channelId: string): readonly StandingMessage[] {
    return this.messages(channelId).filter((message) => message.author.id === this.bot.id);
  }

  /** Returns the current texts in a channel, oldest first, each with its author's name. */
  texts(channelId: string): readonly string[] {
    return this.messages(channelId).map(({ author, text }) => `${author.username}: ${text}`);
  }

  deletedMessages(channelId: string): readonly StandingMessage[] {
    return this.world.channels.get(channelId)?.deleted ?? [];
  }

  /** Returns the bot's answers to an interaction as the person sees them now, ephemeral ones included. */
  answersTo({ channel, messageIds }: Interaction): readonly StandingMessage[] {
    const here = this.world.channels.get(channel.id)?.messages;
    return messageIds.map((id) => here?.get(id)).filter((message) => message !== undefined);
  }

  fault(fault: Fault, match: FaultMatch = {}): void {
    this.#faults.add(fault, match);
  }

  /** Keeps connections open and accepts new ones, but answers and accepts nothing on them until `clearFaults`. */
  goSilent(): void {
    this.#faults.add({ kind: 'hang', isApplied: false }, { times: Number.POSITIVE_INFINITY });
    this.gateway.goSilent();
  }

  clearFaults(): void {
    this.#faults.clear();
    this.gateway.clearFaults();
  }

  /** From now on the token is refused, over REST and by the gateway. */
  revokeToken(): void {
    this.#isTokenRevoked = true;
    this.gateway.cut({ isResumable: false, code: 4004 });
  }

  /** Turns on the switch in the developer portal. */
  grantMessageContent(): void {
    this.#privileged.messageContent = true;
  }

  /** Undoes `revokeToken`. */
  restoreToken(): void {
    this.#isTokenRevoked = false;
  }

  /** Gives the bot another token; from now on the previous one is refused, over REST and by the gateway. */
  renewToken(): void {
    const [id] = this.#token.split('.');
    this.#token = `${id}.GparLy.${randomBytes(24).toString('base64url')}`;
    this.gateway.cut({ isResumable: false, code: 4004 });
  }

  isToken(token: string): boolean {
    return !this.#isTokenRevoked && token === this.#token;
  }

  /** Resolves with the first value of `probe` that isn't undefined or false. Rejects after `deadlineMs`. */
  waitFor<T>(probe: () => T | undefined | false, deadlineMs?: number): Promise<T> {
    return this.#probes.waitFor(probe, deadlineMs);
  }

  /** An outage: cuts every connection and refuses new ones. Messages are kept, and sessions stay resumable. */
  async goAway(): Promise<void> {
    this.gateway.cut();
    await this.#door.shut();
  }

  /** Listens again, on the same port. */
  async comeBack(): Promise<void> {
    await this.#door.open();
  }

  async close(): Promise<void> {
    await this.goAway();
  }

  #ready() {
    const { render } = this.platform;
    return {
      v: 10,
      user: { ...render.user(this.bot), verified: true, mfa_enabled: false, email: null, flags: 0 },
      user_settings: {},
      guilds: memberships(this.platform).map(({ id }) => ({ id, unavailable: true })),
      private_channels: [],
      relationships: [],
      resume_gateway_url: this.resumeUrl ?? `ws://127.0.0.1:${this.#door.port}/resume`,
      session_type: 'normal',
      application: { id: this.bot.id, flags: application(this.platform).flags },
      _trace: ['test'],
    };
  }

  #serve(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> | void {
    const url = new URL(request.url ?? '/', this.baseUrl);
    if (url.pathname.startsWith('/attachments/')) return download(this.platform, url, response);
    const deps = {
      platform: this.platform,
      faults: this.#faults,
      limiter: this.#limiter,
      isToken: (token: string) => this.isToken(token),
      record: (call: Call) => this.calls.push(call),
      refuse: (refusal: Refusal) => this.refusals.push(refusal),
    };
    const { call, fault, reply } = answerCall(deps, request, url, body);
    this.#finish(call, fault, reply, response);
  }

  #finish(call: Call, fault: Fault | undefined, reply: Reply | undefined, response: ServerResponse): void {
    const cuts = fault?.kind === 'cut' || fault?.kind === 'drop-answer';
    if (cuts) response.socket?.destroy();
    else if (fault?.kind === 'slow' && reply !== undefined)
      setTimeout(() => this.#answer(call, reply, response), fault.ms).unref();
    else if (fault?.kind === 'stall' && reply !== undefined) this.#beginAnswer(reply, response);
    else if (reply !== undefined) this.#answer(call, reply, response);
    this.#probes.changed();
  }

  #beginAnswer({ status, headers, body }: Reply, response: ServerResponse): void {
    response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) + 1 });
    response.write(body);
  }

  #answer(call: Call, { status, headers, body }: Reply, response: ServerResponse): void {
    if (response.destroyed) return;
    call.answered = true;
    const length = status === 204 ? {} : { 'content-length': Buffer.byteLength(body) };
    response.writeHead(status, { ...headers, ...length });
    response.end(body);
    this.#probes.changed();
  }
}
