import type { WebSocket } from 'ws';
import type { Wire } from './types.ts';

/** One gateway session, which outlives its socket and remembers every event for a resume. */
export class Session {
  readonly id: string;
  readonly intents: number;
  /** The shard's index and the number of shards. */
  readonly shard: readonly [number, number];
  readonly #log: { readonly seq: number; readonly text: string }[] = [];
  seq = 0;
  socket: WebSocket | undefined;
  /** When its socket closed. */
  leftAt: number | undefined;
  /** Set once it can no longer be resumed; from then on nothing is stored for it. */
  isOver = false;

  constructor(id: string, intents: number, shard: readonly [number, number]) {
    this.id = id;
    this.intents = intents;
    this.shard = shard;
  }

  /** Numbers an event, stores it, and sends it if there is a socket. */
  dispatch(t: string, d: Wire): void {
    if (this.isOver) return;
    this.seq += 1;
    const text = JSON.stringify({ op: 0, s: this.seq, t, d });
    this.#log.push({ seq: this.seq, text });
    this.socket?.send(text);
  }

  /** Sends again what came after `seq`, with the original numbers. */
  replay(seq: number): number {
    const missed = this.#log.filter((event) => event.seq > seq);
    for (const { text } of missed) this.socket?.send(text);
    return missed.length;
  }

  /** Says whether this shard gets the event: guild events go to one shard by the guild's id, direct ones to shard 0. */
  serves(guildId: string | undefined): boolean {
    const [shard, count] = this.shard;
    return guildId === undefined ? shard === 0 : Number((BigInt(guildId) >> 22n) % BigInt(count)) === shard;
  }
}
