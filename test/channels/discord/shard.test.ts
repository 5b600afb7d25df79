/** What is reached of the gateway's library behind its types, and what the code above counts on. */
import { WebSocketShard } from '@discordjs/ws';
import { expect, it } from 'vitest';
import * as ws from 'ws';
import { Shard } from '../../../channels/discord/shard.ts';

it('the library still calls its frames’ reader and its connection what the shard calls them', () => {
  expect(Object.getOwnPropertyNames(WebSocketShard.prototype)).toContain('unpackMessage');
  const doors = { onFrame: () => undefined, onLeave: () => undefined };
  const strategy = {} as ConstructorParameters<typeof Shard>[0];
  expect(Object.getOwnPropertyNames(new Shard(strategy, doors))).toContain('connection');
  // Its types leave out what reads the frames.
  const { Receiver } = ws as unknown as { readonly Receiver: new () => object };
  expect(Object.getOwnPropertyNames(new Receiver())).toContain('_maxPayload');
});
