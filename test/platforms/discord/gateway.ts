import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { WebSocket } from 'ws';
import { type EventFault, EventFaults, type Withheld } from './gateway-faults.ts';
import { areIntents, intents, isGranted, type Privileged } from './intents.ts';
import { Session } from './session.ts';
import type { Wire } from './types.ts';

/** Mistakes of a client for which the platform closes its socket. */
const closes = {
  unknownOp: [4001, 'Unknown opcode.'],
  decode: [4002, 'Error while decoding payload.'],
  notAuthenticated: [4003, 'Not authenticated.'],
  authentication: [4004, 'Authentication failed.'],
  alreadyAuthenticated: [4005, 'Already authenticated.'],
  invalidSeq: [4007, 'Invalid seq.'],
  rateLimited: [4008, 'Rate limited.'],
  timedOut: [4009, 'Session timed out.'],
  invalidShard: [4010, 'Invalid shard.'],
  invalidVersion: [4012, 'Invalid API version.'],
  invalidIntents: [4013, 'Invalid intent(s).'],
  disallowedIntents: [4014, 'Disallowed intent(s).'],
} as const;

type Mistake = keyof typeof closes;

export type GatewayDeps = {
  readonly now: () => number;
  readonly isToken: (token: string) => boolean;
  readonly privileged: Privileged;
  readonly heartbeatIntervalMs: number;
  readonly sessionLifetimeMs: number;
  /** The shortest time between two identifies; an earlier one is refused with op 9. 0: none. */
  readonly identifyIntervalMs: number;
  /** READY without what the gateway adds itself. */
  readonly ready: () => Wire;
  /** The events that follow READY. */
  readonly welcome: (session: Session) => void;
  readonly onChange: () => void;
  readonly refuse: (what: string, code: number, reason: string) => void;
};

export type GatewayEvent = {
  readonly t: string;
  /** One of these intents is required; undefined: every session gets the event. */
  readonly intent?: number;
  readonly guildId?: string | undefined;
  readonly data: (view: { readonly hasContent: boolean }) => Wire;
};

type Connection = { readonly socket: WebSocket; session?: Session; heardAt: number; received: number[] };

/** Gateway v10: sessions, their events and their sockets. */
export class Gateway {
  readonly #deps: GatewayDeps;
  readonly #faults = new EventFaults();
  readonly #connections = new Set<Connection>();
  /** Every session so far, oldest first. */
  readonly sessions: Session[] = [];
  /** How often clients connected, identified, resumed and were refused a resume; events replayed; heartbeats. */
  readonly counts = {
    connections: 0,
    identifies: 0,
    resumes: 0,
    refusedResumes: 0,
    replayed: 0,
    heartbeats: 0,
  };
  /** The path and query of each connection, in order. */
  readonly urls: string[] = [];
  /** False: heartbeats go unanswered, as on a connection that is dead in one direction. */
  acknowledges = true;
  /** Not sent while listed here. The session counts as started or resumed all the same. */
  readonly withheld = new Set<Withheld>();
  /** What HELLO claims as the heartbeat interval instead of the truth. */
  heartbeatClaim: unknown;
  /** Each new connection is closed immediately with this code; undefined: none is. */
  closesAtOnceWith: number | undefined;
  #identifiedAt = Number.NEGATIVE_INFINITY;
  #isSilent = false;

  constructor(deps: GatewayDeps) {
    this.#deps = deps;
  }

  /** Sessions that have a socket. */
  get live(): readonly Session[] {
    return this.sessions.filter((session) => session.socket !== undefined);
  }

  fault(fault: EventFault): void {
    this.#faults.add(fault);
  }

  clearFaults(): void {
    this.#faults.clear();
    this.acknowledges = true;
    this.withheld.clear();
    this.heartbeatClaim = undefined;
    this.closesAtOnceWith = undefined;
    this.#endSilence();
  }

  /** Sends nothing more and ignores everything, on connections that stay open, old and new. */
  goSilent(): void {
    this.#isSilent = true;
    for (const { socket, session } of this.#connections) this.#leave(session, socket);
  }

  #endSilence(): void {
    if (!this.#isSilent) return;
    this.#isSilent = false;
    for (const { socket } of this.#connections) socket.terminate();
  }

  dispatch(event: GatewayEvent): void {
    this.#faults.pass(event.t, () => {
      for (const session of this.sessions) this.#report(session, event);
    });
    this.#deps.onChange();
  }

  /** Sends an event to one session only. */
  tell(session: Session, t: string, data: Wire): void {
    session.dispatch(t, data);
  }

  #report(session: Session, { t, intent, guildId, data }: GatewayEvent): void {
    if (intent !== undefined && (session.intents & intent) === 0) return;
    if (!session.serves(guildId) || !this.#isAlive(session)) return;
    session.dispatch(t, data({ hasContent: (session.intents & intents.messageContent) !== 0 }));
  }

  #isAlive(session: Session): boolean {
    const isLate =
      session.leftAt !== undefined && this.#deps.now() - session.leftAt > this.#deps.sessionLifetimeMs;
    if (isLate) session.isOver = true;
    return !session.isOver;
  }

  /**
   * Cuts every socket, with a close code or without one. The sessions end as well if `isResumable` is false or the code
   * is 1000 or 1001; what happens afterwards is then never reported to them.
   */
  cut({ isResumable = true, code }: { readonly isResumable?: boolean; readonly code?: number } = {}): void {
    for (const { socket, session } of this.#connections) {
      if (code === undefined) socket.terminate();
      else socket.close(code);
      this.#leave(session, socket);
    }
    if (!isResumable || code === 1000 || code === 1001) this.expireSessions();
  }

  /** Silently ends every session: the next resume is refused. */
  expireSessions(): void {
    for (const session of this.sessions) session.isOver = true;
  }

  /** Op 7: requests every client to reconnect and resume. */
  askToReconnect(): void {
    for (const { socket } of this.#connections) send(socket, { op: 7, d: null });
  }

  /** Op 1: requests an immediate heartbeat from every client. */
  askForHeartbeat(): void {
    for (const { socket } of this.#connections) send(socket, { op: 1, d: null });
  }

  /** Op 9: tells every client that its session is invalid; `isResumable` says whether to try a resume. */
  invalidate(isResumable: boolean): void {
    if (!isResumable) this.expireSessions();
    for (const { socket } of this.#connections) send(socket, { op: 9, d: isResumable });
  }

  /** Sends this text to every client unchanged, whatever it says. */
  says(text: string): void {
    for (const { socket } of this.#connections) socket.send(text);
  }

  accept(socket: WebSocket, request: IncomingMessage): void {
    const connection: Connection = { socket, heardAt: Date.now(), received: [] };
    this.#connections.add(connection);
    this.counts.connections += 1;
    this.urls.push(request.url ?? '');
    // A faulty connection ends by closing, which is handled.
    socket.on('error', () => undefined);
    socket.on('message', (data) => {
      if (this.#isSilent) return;
      const mistake = this.#receive(connection, String(data));
      if (mistake !== undefined) this.#close(connection, mistake);
    });
    const watch = setInterval(() => this.#watchHeartbeat(connection), this.#deps.heartbeatIntervalMs);
    watch.unref();
    socket.on('close', (code) => {
      clearInterval(watch);
      this.#connections.delete(connection);
      const { session } = connection;
      // A client that closes with one of these codes gives up its session.
      if (session?.socket === socket && (code === 1000 || code === 1001)) session.isOver = true;
      this.#leave(session, socket);
      this.#deps.onChange();
    });
    const mistake = mistakeIn(new URL(request.url ?? '/', 'http://gateway').searchParams);
    if (mistake !== undefined) this.#close(connection, mistake);
    else if (this.closesAtOnceWith !== undefined) socket.close(this.closesAtOnceWith);
    else if (!this.#isSilent && !this.withheld.has('HELLO')) this.#greet(socket);
    this.#deps.onChange();
  }

  #greet(socket: WebSocket): void {
    const interval = this.heartbeatClaim ?? this.#deps.heartbeatIntervalMs;
    send(socket, { op: 10, d: { heartbeat_interval: interval, _trace: ['test'] } });
  }

  #leave(session: Session | undefined, socket: WebSocket): void {
    if (session?.socket !== socket) return;
    session.socket = undefined;
    session.leftAt = this.#deps.now();
  }

  #watchHeartbeat(connection: Connection): void {
    if (Date.now() - connection.heardAt > this.#deps.heartbeatIntervalMs * 2)
      this.#close(connection, 'timedOut');
  }

  #close(connection: Connection, why: Mistake): void {
    const [code, reason] = closes[why];
    this.#deps.refuse('gateway', code, reason);
    if (connection.session !== undefined) connection.session.isOver = true;
    connection.socket.close(code, reason);
  }

  #receive(connection: Connection, text: string): Mistake | undefined {
    const payload = parse(text);
    if (payload === undefined || text.length > 4096) return 'decode';
    const at = Date.now();
    connection.received = [...connection.received.filter((one) => at - one < 60_000), at];
    if (connection.received.length > 120) return 'rateLimited';
    const { op, d } = payload;
    if (op === 1) {
      connection.heardAt = at;
      this.counts.heartbeats += 1;
      this.#deps.onChange();
      if (this.acknowledges) send(connection.socket, { op: 11, d: null });
      return undefined;
    }
    if (op === 2) return this.#identify(connection, d);
    if (op === 6) return this.#resume(connection, d);
    if (typeof op !== 'number' || ![3, 4, 8, 31].includes(op)) return 'unknownOp';
    if (connection.session === undefined) return 'notAuthenticated';
    // A client that requests members would wait for them in vain, so the test must learn why.
    if (op === 8)
      this.#deps.refuse('gateway', 0, 'test server: op 8, members on request, is not spoken here');
    return undefined;
  }

  #identify(connection: Connection, d: Wire): Mistake | undefined {
    if (connection.session !== undefined) return 'alreadyAuthenticated';
    if (!this.#deps.isToken(String(d.token))) return 'authentication';
    const asked = d.intents;
    if (!areIntents(asked)) return 'invalidIntents';
    if (!isGranted(asked, this.#deps.privileged)) return 'disallowedIntents';
    const [shard, count] = (d.shard ?? [0, 1]) as readonly [number, number];
    if (!(shard >= 0 && shard < count)) return 'invalidShard';
    if (typeof d.properties !== 'object' || d.properties === null) return 'decode';
    const since = Date.now() - this.#identifiedAt;
    if (since < this.#deps.identifyIntervalMs) {
      send(connection.socket, { op: 9, d: false });
      return undefined;
    }
    this.#identifiedAt = Date.now();
    const session = new Session(randomBytes(16).toString('hex'), asked, [shard, count]);
    session.socket = connection.socket;
    connection.session = session;
    this.sessions.push(session);
    this.counts.identifies += 1;
    if (!this.withheld.has('READY'))
      session.dispatch('READY', { ...this.#deps.ready(), session_id: session.id, shard: session.shard });
    if (!this.withheld.has('GUILD_CREATE')) this.#deps.welcome(session);
    this.#deps.onChange();
    return undefined;
  }

  #resume(connection: Connection, d: Wire): Mistake | undefined {
    if (connection.session !== undefined) return 'alreadyAuthenticated';
    if (!this.#deps.isToken(String(d.token))) return 'authentication';
    const session = this.sessions.find((one) => one.id === d.session_id);
    if (session === undefined || !this.#isAlive(session)) {
      this.counts.refusedResumes += 1;
      send(connection.socket, { op: 9, d: false });
      this.#deps.onChange();
      return undefined;
    }
    if (typeof d.seq !== 'number' || d.seq > session.seq) return 'invalidSeq';
    session.socket?.terminate();
    session.socket = connection.socket;
    session.leftAt = undefined;
    connection.session = session;
    this.counts.resumes += 1;
    if (!this.withheld.has('RESUMED')) this.counts.replayed += session.replay(d.seq);
    if (!this.withheld.has('RESUMED')) session.dispatch('RESUMED', { _trace: ['test'] });
    this.#deps.onChange();
    return undefined;
  }
}

function mistakeIn(query: URLSearchParams): Mistake | undefined {
  if (query.get('v') !== '10') return 'invalidVersion';
  // Compression and ETF aren't supported here.
  return query.get('encoding') !== 'json' || query.has('compress') ? 'decode' : undefined;
}

function send(socket: WebSocket, payload: Wire): void {
  socket.send(JSON.stringify({ s: null, t: null, ...payload }));
}

function parse(text: string): { readonly op: unknown; readonly d: Wire } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return undefined;
    const { op, d } = value as Wire;
    return { op, d: typeof d === 'object' && d !== null ? (d as Wire) : {} };
  } catch {
    return undefined;
  }
}
