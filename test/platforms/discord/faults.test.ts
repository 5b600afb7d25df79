import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { discordRates } from './rates.ts';
import { callRaw } from './raw-client.ts';
import { type DiscordServer, type DiscordServerOptions, startDiscordServer } from './server.ts';
import type { ChannelState, GuildState } from './world.ts';

let server: DiscordServer;
let team: GuildState;
let general: ChannelState;

const begin = async (options: DiscordServerOptions = {}) => {
  await server?.close();
  server = await startDiscordServer(options);
  team = server.world.addGuild('Team', server.world.addUser('ada'));
  general = server.world.addChannel(team, 'general');
};
beforeEach(() => begin());
afterEach(() => server.close());

const post = (body: object, channel: ChannelState = general) =>
  callRaw(server, 'POST', `/channels/${channel.id}/messages`, body);

describe('rates', () => {
  it('are told in headers and kept per channel', async () => {
    const limited = 'POST /channels/:channel/messages';
    await begin({ rates: { ...discordRates, routes: { [limited]: { limit: 5, windowMs: 60_000 } } } });
    const other = server.world.addChannel(team, 'other');
    const first = await post({ content: 'x' });
    expect(first.headers.get('x-ratelimit-limit')).toBe('5');
    expect(first.headers.get('x-ratelimit-remaining')).toBe('4');
    expect(Number(first.headers.get('x-ratelimit-reset-after'))).toBeGreaterThan(0);
    const rest = await Promise.all([1, 2, 3, 4, 5].map(() => post({ content: 'x' })));
    const refused = rest.filter((answer) => answer.status === 429);
    expect(refused).toHaveLength(1);
    expect(refused[0]?.body).toMatchObject({ global: false, message: 'You are being rate limited.' });
    expect(refused[0]?.body.retry_after).toBeGreaterThan(0);
    expect((await post({ content: 'x' }, other)).status).toBe(200);
    expect(server.messages(general.id)).toHaveLength(5);
    expect(server.refusals).toEqual([]);
  });

  it('hold for the whole application too', async () => {
    await begin({ rates: { ...discordRates, routes: {}, global: { limit: 2, windowMs: 60_000 } } });
    const answers = [
      await post({ content: 'x' }),
      await post({ content: 'x' }),
      await post({ content: 'x' }),
    ];
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 429]);
    expect(answers[2]?.headers.get('x-ratelimit-global')).toBe('true');
    expect(answers[2]?.body.global).toBe(true);
  });
});

describe('faults', () => {
  const route = 'POST /channels/:channel/messages';

  it('come before or after the message is taken, as asked, and then are over', async () => {
    server.fault({ kind: 'cut' }, { route });
    await expect(post({ content: 'cut' })).rejects.toThrow();
    server.fault({ kind: 'drop-answer' }, { route });
    await expect(post({ content: 'dropped' })).rejects.toThrow();
    server.fault({ kind: 'lose-answer' }, { route });
    expect((await post({ content: 'lost' })).status).toBe(502);
    server.fault({ kind: 'page', status: 503 }, { route });
    expect((await post({ content: 'page' })).status).toBe(503);
    server.fault({ kind: 'rate-limit', retryAfterMs: 500 }, { route });
    expect((await post({ content: 'limited' })).body).toMatchObject({ retry_after: 0.5, global: false });
    server.fault({ kind: 'refuse', status: 403, code: 50013, message: 'Missing Permissions' }, { route });
    expect((await post({ content: 'refused' })).status).toBe(403);
    server.fault({ kind: 'slow', ms: 30 }, { route });
    const slow = post({ content: 'slow' });
    await server.waitFor(() => server.texts(general.id).includes('parley: slow'));
    expect((await slow).status).toBe(200);
    expect((await post({ content: 'fine' })).status).toBe(200);
    expect(server.texts(general.id).map((text) => text.slice(8))).toEqual([
      'dropped',
      'lost',
      'slow',
      'fine',
    ]);
    expect(server.calls.map((one) => one.answered)).toEqual([
      false,
      false,
      true,
      true,
      true,
      true,
      true,
      true,
    ]);
    expect(server.refusals).toEqual([]);
  });

  it('leave a call without an answer, with the message taken or not', async () => {
    for (const isApplied of [true, false]) {
      server.fault({ kind: 'hang', isApplied }, { route });
      const stop = new AbortController();
      const hanging = fetch(`${server.apiUrl}/v10/channels/${general.id}/messages`, {
        method: 'POST',
        headers: { authorization: `Bot ${server.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ content: `hangs, ${isApplied}` }),
        signal: stop.signal,
      });
      await server.waitFor(() => server.calls.at(-1)?.body.content === `hangs, ${isApplied}`);
      stop.abort();
      await expect(hanging).rejects.toThrow();
    }
    expect(server.texts(general.id)).toEqual(['parley: hangs, true']);
  });
});
