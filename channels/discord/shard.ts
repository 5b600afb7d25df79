/**
 * The library's shard, with two safeguards. Frames are checked before the library acts on them: it trusts every frame,
 * and one without its fields causes an unhandled rejection, which ends the process. And where it would dial again,
 * after 500 ms however often it failed, this shard ends. It comes from `@discordjs/ws`, because discord.js has its own
 * class of that name, which only its manager may create.
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
    if (receiver !== undefined) receiver._maxPayload = longestFrame;
  }

  #inside(): Inside {
    return this as unknown as Inside;
  }
}
