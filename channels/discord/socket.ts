/**
 * One connection to the gateway, from dialling to its end. The library handles the greeting, resumes or identifies, and
 * sends the heartbeats. The connection is never dialled again, and it always ends: through the other side, a deadline,
 * or its owner.
 */

import { setImmediate } from 'node:timers/promises';
import {
  DefaultWebSocketManagerOptions,
  type FetchingStrategyOptions,
  type IContextFetchingStrategy,
  type SessionInfo,
  WebSocketShard,
  type WebSocketShardDestroyOptions,
  WebSocketShardDestroyRecovery,
  WebSocketShardEvents,
} from '@discordjs/ws';
import { longestText } from '#channel-kit/read-json.ts';
import type { Clock } from '#contracts/clock.ts';
import { waitUntil } from './deadline.ts';
import { networkReason } from './failures.ts';
import { type Frame, readFrame } from './gateway-frame.ts';
import type { Dispatch } from './inbound.ts';

export type SocketDeps = {
  /** Without a query. */
  readonly url: string;
  readonly token: string;
  readonly intents: number;
  /** The session to resume; absent to identify for a new one. */
  readonly session?: SessionInfo | undefined;
  readonly clock: Clock;
  /** Called with the data to resume the session after the event just reported. */
  onSession(session: SessionInfo): void;
  /** Called just before a new session is requested. */
  onIdentify(): void;
  /** Called when events flow: after READY or RESUMED. */
  onActivity(): void;
  onDispatch(dispatch: Dispatch): void;
};

export type SocketEnd = {
  /** The other side's close code; undefined when closed here. */
  readonly code?: number;
  readonly reason: string;
  /** The session's state: resumable, or over. */
  readonly session: 'kept' | 'over';
  /** How long events flowed, ms; undefined if they never did. */
  readonly connectedMs?: number;
};

/** Longest time from dialling to the open connection, ms. */
const openingPatienceMs = 10_000;
/** Longest time from dialling to READY or RESUMED, ms. */
const standingPatienceMs = 30_000;
/** Discord takes the first code for the end of the session; after the second, the session can be resumed. */
const closeCodes = { over: 1000, kept: 4200 } as const;
/** After these codes the session can't be resumed, or never started. */
const sessionEnds = new Set([1000, 4003, 4004, 4005, 4007, 4008, 4009, 4010, 4011, 4012, 4013, 4014]);

export class GatewaySocket {
  readonly ended: Promise<SocketEnd>;
  /** Resolves when nothing is left of the connection; at most 2 s after its end. */
  readonly closed: Promise<void>;
  readonly #deps: SocketDeps;
  readonly #end: (end: SocketEnd) => void;
  readonly #over = new AbortController();
  #session: SessionInfo | undefined;
  #hasGreeted = false;
  #standsSince: number | undefined;

  constructor(deps: SocketDeps) {
    const { promise, resolve } = Promise.withResolvers<SocketEnd>();
    this.#deps = deps;
    this.ended = promise;
    this.#end = resolve;
    this.#session = deps.session;
    const shard = this.#newShard();
    this.closed = promise.then(({ session }) => shard.unsubscribe(closeCodes[session]));
    // Its events report any failure.
    shard.connect().catch(() => undefined);
    void this.#expectStanding(shard);
  }

  /** Ends the connection from this side and passes nothing more on; the close code depends on the `session`. */
  close(reason: string, session: SocketEnd['session']): void {
    this.#finish({ reason, session });
  }

  #newShard(): Shard {
    const strategy = {
      options: shardOptions(this.#deps),
      retrieveSessionInfo: () => this.#session ?? null,
      updateSessionInfo: (_id: number, session: SessionInfo | null) => {
        if (session !== null) this.#session = { ...session, resumeURL: session.resumeURL ?? this.#deps.url };
      },
      waitForIdentify: async () => this.#deps.onIdentify(),
    };
    const shard = new Shard(strategy, {
      onFrame: (text) => this.#read(text),
      onLeave: (reason, session) => this.close(reason, session),
    });
    shard.on(WebSocketShardEvents.Closed, ({ code }) => this.#closed(code));
    shard.on(WebSocketShardEvents.Error, ({ error }) => this.close(networkReason(error), 'kept'));
    shard.on(WebSocketShardEvents.Ready, () => this.#stand());
    shard.on(WebSocketShardEvents.Resumed, () => this.#stand());
    shard.on(WebSocketShardEvents.Dispatch, ({ data }) => this.#report(data));
    return shard;
  }

  /** Ends a connection that stays silent, whether greeting, READY or RESUMED is missing, and drops its session. */
  async #expectStanding(shard: Shard): Promise<void> {
    const { clock } = this.#deps;
    const dialedAt = clock.now();
    await waitUntil(clock, dialedAt + openingPatienceMs, this.#over.signal);
    // Nothing was there that could have resumed the session, so it is kept.
    if (shard.isDialing) this.close('Discord’s gateway could not be reached in time', 'kept');
    await waitUntil(clock, dialedAt + standingPatienceMs, this.#over.signal);
    if (this.#standsSince === undefined) this.close('Discord’s gateway did not answer in time', 'over');
  }

  #closed(code: number): void {
    const reason = `the connection to Discord’s gateway ended (${code})`;
    this.#finish({ code, reason, session: sessionEnds.has(code) ? 'over' : 'kept' });
  }

  #read(text: string): Frame | undefined {
    if (this.#over.signal.aborted) return undefined;
    if (text.length > longestText) {
      // A resumed session would start with the same frame again.
      this.close('Discord’s gateway sent a frame that is too large', 'over');
      return undefined;
    }
    const frame = readFrame(text);
    if (frame?.op !== 10) return frame;
    // A second greeting would start a second heartbeat, which nothing could stop.
    if (this.#hasGreeted) return undefined;
    this.#hasGreeted = true;
    return frame;
  }

  /** Keeps an event's number only after reporting it: one reported twice is a duplicate, one never reported is lost. */
  #report(dispatch: Dispatch): void {
    if (this.#session === undefined || this.#over.signal.aborted) return;
    this.#deps.onDispatch(dispatch);
    this.#deps.onSession({ ...this.#session, sequence: dispatch.s });
  }

  #stand(): void {
    if (this.#over.signal.aborted) return;
    this.#standsSince ??= this.#deps.clock.now();
    this.#deps.onActivity();
  }

  #finish(end: Omit<SocketEnd, 'connectedMs'>): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    const since = this.#standsSince;
    this.#end({ ...end, ...(since === undefined ? {} : { connectedMs: this.#deps.clock.now() - since }) });
  }
}

/** Returns options with the library's own deadlines off: they wouldn't end a connection that is still being opened. */
function shardOptions({ url, token, intents }: SocketDeps): FetchingStrategyOptions {
  return {
    ...DefaultWebSocketManagerOptions,
    token,
    intents,
    shardCount: 1,
    identifyProperties: { os: process.platform, browser: 'parley', device: 'parley' },
    handshakeTimeout: null,
    helloTimeout: null,
    readyTimeout: null,
    gatewayInformation: {
      url,
      shards: 1,
      // Only the library's manager reads this, and there is none.
      session_start_limit: { total: 1, remaining: 1, reset_after: 0, max_concurrency: 1 },
    },
  };
}

/**
 * The library's shard, with two safeguards. Frames are checked before the library acts on them: it trusts every frame,
 * and one without its fields causes an unhandled rejection, which ends the process. And where it would dial again,
 * after 500 ms however often it failed, this shard ends. It comes from `@discordjs/ws`, because discord.js has its own
 * class of that name, which only its manager may create.
 */
type ShardDoors = {
  /** Returns the frame that the library may act on; undefined for one it must not see. */
  onFrame(text: string): Frame | undefined;
  /** Called when the library wants to leave the connection; calling `unsubscribe` is up to the listener. */
  onLeave(reason: string, session: 'kept' | 'over'): void;
};

/** How long to wait for the connection to close, ms. */
const closingMs = 2_000;
const connecting = 0;

/**
 * Members that are private in the library's types only: there is no other way to get at a frame before it is acted on,
 * or at a connection that is still being opened. test/channels/discord/shard.test.ts fails if they are renamed.
 */
type Inside = {
  unpackMessage(data: unknown, isBinary: boolean): Promise<Frame | null>;
  readonly connection: Connection | null;
};
type Connection = {
  readonly readyState: number;
  readonly _receiver?: { _maxPayload: number };
  on(event: 'error', listener: () => void): unknown;
  terminate(): void;
};

export class Shard extends WebSocketShard {
  readonly #doors: ShardDoors;

  constructor(strategy: IContextFetchingStrategy, doors: ShardDoors) {
    super(strategy, 0);
    this.#doors = doors;
    // Binary frames are compressed, and compression wasn't requested.
    this.#inside().unpackMessage = async (data, isBinary) => {
      this.#boundFrames();
      return isBinary ? null : (doors.onFrame(String(data)) ?? null);
    };
  }

  /** The library calls this to end a connection and dial again. */
  override async destroy({ reason, recover }: WebSocketShardDestroyOptions = {}): Promise<void> {
    const session = recover === WebSocketShardDestroyRecovery.Resume ? 'kept' : 'over';
    this.#doors.onLeave(`the connection to Discord’s gateway ended (${reason ?? 'left'})`, session);
  }

  /** The connection is still being opened. */
  get isDialing(): boolean {
    return this.#inside().connection?.readyState === connecting;
  }

  /** Resolves when the connection is closed, or is given up on after 2 s. Never throws. */
  async unsubscribe(code: number): Promise<void> {
    // The library only dials a moment after `connect` was called.
    await setImmediate();
    const { connection } = this.#inside();
    if (connection === null) return;
    // The library removes its own listener, and an error without a listener would end the process.
    connection.on('error', () => undefined);
    // Otherwise it would still be opened, with nothing listening to it.
    if (this.isDialing) connection.terminate();
    // The other side may never close its half.
    setTimeout(() => connection.terminate(), closingMs).unref();
    await super.destroy({ code });
  }

  /** A frame is assembled and decoded in one piece before any check, and the library would accept 100 MB. */
  #boundFrames(): void {
    const receiver = this.#inside().connection?._receiver;
    if (receiver !== undefined) receiver._maxPayload = longestText;
  }

  #inside(): Inside {
    return this as unknown as Inside;
  }
}
