/**
 * One connection to the gateway, from its dialling to its end. The library greets, resumes or identifies and
 * keeps the heartbeats. It never dials again, and it always ends: by its other side, by a deadline, or by
 * its owner.
 */
import {
  DefaultWebSocketManagerOptions,
  type FetchingStrategyOptions,
  type SessionInfo,
  WebSocketShardEvents,
} from '@discordjs/ws';
import { longestFrame } from '#channel-kit/bounded-json.ts';
import type { Clock } from '#contracts/clock.ts';
import { waitUntil } from './deadline.ts';
import { networkReason } from './failures.ts';
import { type Frame, readFrame } from './gateway-frame.ts';
import type { Dispatch } from './inbound.ts';
import { Shard } from './shard.ts';

export type SocketDeps = {
  /** Without a query. */
  readonly url: string;
  readonly token: string;
  readonly intents: number;
  /** To be resumed; absent to identify anew. */
  readonly session?: SessionInfo | undefined;
  readonly clock: Clock;
  /** Data to resume the session after the event just reported. */
  onSession(session: SessionInfo): void;
  /** It is about to ask for a new session. */
  onIdentify(): void;
  /** Events flow: after READY or RESUMED. */
  onStanding(): void;
  onDispatch(dispatch: Dispatch): void;
};

export type SocketEnd = {
  /** The other side's close code; undefined when closed here. */
  readonly code?: number;
  readonly reason: string;
  /** The session's state: resumable, or over. */
  readonly session: 'kept' | 'over';
  /** How long events had flowed, ms; undefined when they never did. */
  readonly stoodMs?: number;
};

/** From dialling to the open connection. */
const openingPatienceMs = 10_000;
/** From dialling to READY or RESUMED. */
const standingPatienceMs = 30_000;
/** Discord takes these for the end of the session, and our other codes for a pause. */
const closeCodes = { over: 1000, kept: 4200 } as const;
/** After these the session cannot be resumed, or has never begun. */
const sessionEnds = new Set([1000, 4003, 4004, 4005, 4007, 4008, 4009, 4010, 4011, 4012, 4013, 4014]);

export class GatewaySocket {
  readonly ended: Promise<SocketEnd>;
  /** Nothing is left of the connection; at most 2 s after its end. */
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
    this.closed = promise.then(({ session }) => shard.hangUp(closeCodes[session]));
    // Whatever it fails with is told by its events.
    shard.connect().catch(() => undefined);
    void this.#expectStanding(shard);
  }

  /** Ends it from this side. Nothing is handed on any more; `session` is told to Discord. */
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
    shard.on(WebSocketShardEvents.Dispatch, ({ data }) => this.#tell(data));
    return shard;
  }

  /** Whatever it is that does not come, greeting, READY or RESUMED: a session that stays silent is dropped. */
  async #expectStanding(shard: Shard): Promise<void> {
    const { clock } = this.#deps;
    const dialledAt = clock.now();
    await waitUntil(clock, dialledAt + openingPatienceMs, this.#over.signal);
    // Nobody was there who could have resumed it.
    if (shard.isDialling) this.close('Discord’s gateway could not be reached in time', 'kept');
    await waitUntil(clock, dialledAt + standingPatienceMs, this.#over.signal);
    if (this.#standsSince === undefined) this.close('Discord’s gateway did not answer in time', 'over');
  }

  #closed(code: number): void {
    const reason = `the connection to Discord’s gateway ended (${code})`;
    this.#finish({ code, reason, session: sessionEnds.has(code) ? 'over' : 'kept' });
  }

  #read(text: string): Frame | undefined {
    if (this.#over.signal.aborted) return undefined;
    if (text.length > longestFrame) {
      // Resumed, the session would begin with it again.
      this.close('Discord’s gateway sent more than is taken', 'over');
      return undefined;
    }
    const frame = readFrame(text);
    if (frame?.op !== 10) return frame;
    // A second greeting would be a second heart, which nobody could stop any more.
    if (this.#hasGreeted) return undefined;
    this.#hasGreeted = true;
    return frame;
  }

  /** The number of an event is kept once it was told: what is told twice is a duplicate, what is not would be lost. */
  #tell(dispatch: Dispatch): void {
    if (this.#session === undefined || this.#over.signal.aborted) return;
    this.#deps.onDispatch(dispatch);
    this.#deps.onSession({ ...this.#session, sequence: dispatch.s });
  }

  #stand(): void {
    if (this.#over.signal.aborted) return;
    this.#standsSince ??= this.#deps.clock.now();
    this.#deps.onStanding();
  }

  #finish(end: Omit<SocketEnd, 'stoodMs'>): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    const since = this.#standsSince;
    this.#end({ ...end, ...(since === undefined ? {} : { stoodMs: this.#deps.clock.now() - since }) });
  }
}

/** The library's own deadlines are off: it would leave a connection alone that is still being made. */
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
      // Read by the manager alone, which there is none of.
      session_start_limit: { total: 1, remaining: 1, reset_after: 0, max_concurrency: 1 },
    },
  };
}
