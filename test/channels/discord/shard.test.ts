/** What the code uses of the gateway library's untyped internals, and the names it relies on. */
import { WebSocketShard } from '@discordjs/ws';
import { expect, it } from 'vitest';
import * as ws from 'ws';
import { Shard } from '../../../channels/discord/socket.ts';

it("finds the library's private members that the shard uses", () => {
  expect(Object.getOwnPropertyNames(WebSocketShard.prototype)).toContain('unpackMessage');
  const doors = { onFrame: () => undefined, onLeave: () => undefined };
  const strategy = {} as ConstructorParameters<typeof Shard>[0];
  expect(Object.getOwnPropertyNames(new Shard(strategy, doors))).toContain('connection');
  // The library's types omit the class that reads the frames.
  const { Receiver } = ws as unknown as { readonly Receiver: new () => object };
  expect(Object.getOwnPropertyNames(new Receiver())).toContain('_maxPayload');
});
