import { afterEach, beforeEach } from 'vitest';
import { callRaw } from './raw-client.ts';
import { type DiscordServer, type DiscordServerOptions, startDiscordServer } from './server.ts';
import type { DiscordUser } from './types.ts';
import type { ChannelState, GuildState } from './world.ts';

/** The server of the running test, and the people and places on it. */
export let server: DiscordServer;
export let ada: DiscordUser;
export let team: GuildState;
export let general: ChannelState;
let now = 1_800_000_000_000;

/** Gives each test in the file its own server, with a guild that Ada owns. */
export function useATeam(): void {
  beforeEach(() => begin());
  afterEach(() => server.close());
}

/** Restarts the test's server. */
export async function begin(options: DiscordServerOptions = {}): Promise<void> {
  await server?.close();
  server = await startDiscordServer({ now: () => now, ...options });
  ada = server.world.addUser('ada');
  team = server.world.addGuild('Team', ada);
  general = server.world.addChannel(team, 'general');
}

/** Advances the server's clock, ms. */
export function passes(ms: number): void {
  now += ms;
}

export const call = (method: string, path: string, body?: unknown, token?: string) =>
  callRaw(server, method, path, body, token);
export const post = (body: object, channel: ChannelState = general) =>
  call('POST', `/channels/${channel.id}/messages`, body);
