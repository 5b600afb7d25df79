/**
 * The library's shard, with two doors kept. What it would act on is read first: it trusts every frame, and one
 * without its fields is a rejection that nobody handles, the end of the process. And where it would dial
 * again, after 500 ms however often it failed, it ends. It comes from `@discordjs/ws`, since discord.js has a class
 * of its own by that name, which only its manager may make.
 */
import { setImmediate } from 'node:timers/promises';
import {
  type IContextFetchingStrategy,
  WebSocketShard,
  type WebSocketShardDestroyOptions,
  WebSocketShardDestroyRecovery,
} from '@discordjs/ws';
import { longestFrame } from '#channel-kit/bounded-json.ts';
import type { Frame } from './gateway-frame.ts';

export type ShardDoors = {
  /** The frame the library may act on; undefined for one it must not see. */
  onFrame(text: string): Frame | undefined;
  /** The library wants to leave the connection; `hangUp` is up to the listener. */
  onLeave(reason: string, session: 'kept' | 'over'): void;
};

/** The connection is waited for this long to close. */
const closingMs = 2_000;
const connecting = 0;

/**
 * Private in the library’s types only: there is no other way to a frame before it is acted on, nor to a
 * connection that is still being made. test/channels/discord/shard.test.ts fails when they are renamed.
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
    // Binary frames are compressed ones, which nobody asked for.
    this.#inside().unpackMessage = async (data, isBinary) => {
      this.#boundFrames();
      return isBinary ? null : (doors.onFrame(String(data)) ?? null);
    };
  }

  /** The library's way to end a connection and to dial again. */
  override async destroy({ reason, recover }: WebSocketShardDestroyOptions = {}): Promise<void> {
    const session = recover === WebSocketShardDestroyRecovery.Resume ? 'kept' : 'over';
    this.#doors.onLeave(`the connection to Discord’s gateway ended (${reason ?? 'left'})`, session);
  }

  /** The connection does not stand yet. */
  get isDialling(): boolean {
    return this.#inside().connection?.readyState === connecting;
  }

  /** Resolves when the connection is closed, or is given up after 2 s. Never throws. */
  async hangUp(code: number): Promise<void> {
    // The library dials a moment after it was told to.
    await setImmediate();
    const { connection } = this.#inside();
    if (connection === null) return;
    // Its own listener goes; a fault that nobody listens to would be one of the process.
    connection.on('error', () => undefined);
    // It would go on being made, with nobody to hear what comes.
    if (this.isDialling) connection.terminate();
    // The other side may never close its half.
    setTimeout(() => connection.terminate(), closingMs).unref();
    await super.destroy({ code });
  }

  /** A frame is put together and decoded in one piece before anybody sees it, and the library takes 100 MB. */
  #boundFrames(): void {
    const receiver = this.#inside().connection?._receiver;
    if (receiver !== undefined) receiver._maxPayload = longestFrame;
  }

  #inside(): Inside {
    return this as unknown as Inside;
  }
}
