/** The test server must refuse what Discord refuses, or the tests that rely on it prove nothing. */
import { describe, expect, it } from 'vitest';
import { ada, begin, call, general, passes, post, server, team, useATeam } from './a-team.ts';
import { bodyText, listOf, refusalOf } from './raw-client.ts';
import { channelTypes } from './types.ts';

useATeam();

describe('calls', () => {
  it('refuses calls with a wrong token, prefix, version, path or method', async () => {
    const unauthorized = '401 0 401: Unauthorized';
    expect(await refusalOf(call('GET', '/users/@me', undefined, 'Bot wrong'))).toBe(unauthorized);
    expect(await refusalOf(call('GET', '/users/@me', undefined, server.token))).toBe(unauthorized);
    expect(await refusalOf(call('GET', '/cakes'))).toBe('404 0 404: Not Found');
    expect(await refusalOf(call('DELETE', '/users/@me'))).toBe('405 0 405: Method Not Allowed');
    const old = await fetch(`${server.apiUrl}/v6/users/@me`);
    expect(old.status).toBe(400);
    expect(server.refusals).toHaveLength(5);
  });

  it('refuses calls to channels that are unknown, hidden, forbidden or no channels', async () => {
    expect(await refusalOf(call('GET', '/channels/123'))).toBe('404 10003 Unknown Channel');
    expect(await bodyText(call('GET', '/channels/general'))).toContain('is not snowflake');
    server.places.denies(general, 'sendMessages');
    expect(await refusalOf(post({ content: 'x' }))).toBe('403 50013 Missing Permissions');
    server.places.denies(general, 'viewChannel');
    expect(await refusalOf(post({ content: 'x' }))).toBe('403 50001 Missing Access');
    const forum = server.world.addChannel(team, 'ideas', channelTypes.forum);
    expect(await refusalOf(post({ content: 'x' }, forum))).toBe(
      '400 50008 Cannot send messages in a non-text channel',
    );
    server.places.removesBot(team);
    const other = server.world.addChannel(team, 'other');
    expect(await refusalOf(post({ content: 'x' }, other))).toBe('403 50001 Missing Access');
  });
});

describe('a message', () => {
  it('accepts messages of 1 to 2000 characters, trimmed', async () => {
    expect((await post({ content: ` ${'x'.repeat(2000)}\n` })).status).toBe(200);
    const long = post({ content: 'x'.repeat(2001) });
    expect(await refusalOf(long)).toBe('400 50035 Invalid Form Body');
    expect((await long).body.errors).toEqual({
      content: {
        _errors: [{ code: 'BASE_TYPE_MAX_LENGTH', message: 'Must be 2000 or fewer in length.' }],
      },
    });
    expect(await refusalOf(post({ content: ' \n ' }))).toBe('400 50006 Cannot send an empty message');
    expect(await refusalOf(post({}))).toBe('400 50006 Cannot send an empty message');
    expect((await post({ embeds: [{ description: 'only this' }] })).status).toBe(200);
  });

  it('creates one message per nonce for a few minutes, whatever its channel and text', async () => {
    const other = server.world.addChannel(team, 'other');
    const first = await post({ content: 'one', nonce: 'n1', enforce_nonce: true });
    const again = await post({ content: 'two', nonce: 'n1', enforce_nonce: true }, other);
    expect(again.body).toMatchObject({ id: first.body.id, content: 'one', nonce: 'n1' });
    expect(server.calls.at(-1)).toMatchObject({ isRepeat: true, messageId: first.body.id });
    await post({ content: 'three', nonce: 'n1' });
    passes(180_001);
    await post({ content: 'four', nonce: 'n1', enforce_nonce: true });
    expect(server.texts(general.id)).toEqual(['parley: one', 'parley: three', 'parley: four']);
    expect(server.texts(other.id)).toEqual([]);
    expect(await bodyText(post({ content: 'x', nonce: 'n'.repeat(26) }))).toContain('25 or fewer');
  });

  it('returns a nonce in the answer only', async () => {
    const sent = await post({ content: 'one', nonce: 'n1' });
    expect(sent.body.nonce).toBe('n1');
    const read = await call('GET', `/channels/${general.id}/messages/${String(sent.body.id)}`);
    expect(read.body).not.toHaveProperty('nonce');
  });

  it('pings people named outside of code unless told not to, and again at an edit', async () => {
    const role = server.world.addRole(team, 'ops');
    const text = `<@${ada.id}> <@&${role.id}> @everyone <@1>`;
    await post({ content: text });
    expect(server.pings).toMatchObject([{ by: 'send', isEveryone: true, users: [ada.id], roles: [role.id] }]);
    await post({ content: `\`${text}\`` });
    const silent = await post({ content: text, allowed_mentions: { parse: [] } });
    expect(server.pings).toHaveLength(1);
    expect(silent.body).toMatchObject({ mentions: [], mention_everyone: false, mention_roles: [] });
    const path = `/channels/${general.id}/messages/${String(silent.body.id)}`;
    await call('PATCH', path, { content: `${text}!`, allowed_mentions: { parse: [] } });
    expect(server.pings).toHaveLength(1);
    await call('PATCH', path, { content: `${text}!!` });
    expect(server.pings.at(-1)).toMatchObject({ by: 'edit', isEveryone: true });
    const both = { parse: ['users'], users: [ada.id] };
    expect(await bodyText(post({ content: text, allowed_mentions: both }))).toContain('mutually exclusive');
    expect(await bodyText(post({ content: text, allowed_mentions: { parse: ['all'] } }))).toContain(
      'everyone',
    );
  });

  it('pings the author of a quoted message unless told not to, and refuses a quote that is gone', async () => {
    const asked = server.people.sends({ from: ada, channel: general, text: 'hm?' });
    const reference = { message_id: asked.id };
    await post({ content: 'a', message_reference: reference });
    expect(server.pings).toMatchObject([{ users: [ada.id] }]);
    const quiet = { parse: [], replied_user: false };
    const reply = await post({ content: 'b', message_reference: reference, allowed_mentions: quiet });
    expect(server.pings).toHaveLength(1);
    expect(reply.body).toMatchObject({ type: 19, referenced_message: { id: asked.id, content: 'hm?' } });
    server.people.deletes(asked);
    expect(await bodyText(post({ content: 'c', message_reference: reference }))).toContain('UNKNOWN_MESSAGE');
    const patient = { ...reference, fail_if_not_exists: false };
    expect((await post({ content: 'd', message_reference: patient })).body.type).toBe(0);
  });

  it('lets only the author edit a message, and not to nothing', async () => {
    const theirs = server.people.sends({ from: ada, channel: general, text: 'mine' });
    const path = `/channels/${general.id}/messages`;
    const notOurs = '403 50005 Cannot edit a message authored by another user';
    expect(await refusalOf(call('PATCH', `${path}/${theirs.id}`, { content: 'x' }))).toBe(notOurs);
    expect(await refusalOf(call('DELETE', `${path}/${theirs.id}`))).toBe('403 50013 Missing Permissions');
    server.places.grants(general, 'manageMessages');
    expect((await call('DELETE', `${path}/${theirs.id}`)).status).toBe(204);
    expect(await refusalOf(call('GET', `${path}/${theirs.id}`))).toBe('404 10008 Unknown Message');
    const { body } = await post({ content: 'ours' });
    expect(await refusalOf(call('PATCH', `${path}/${String(body.id)}`, { content: '' }))).toContain('50006');
    expect(
      await bodyText(call('PATCH', `${path}/${String(body.id)}`, { content: 'x'.repeat(2001) })),
    ).toContain('BASE_TYPE_MAX_LENGTH');
    const dm = server.people.sends({ from: ada, text: 'private' });
    const notHere = '403 50003 Cannot execute action on a DM channel';
    expect(await refusalOf(call('DELETE', `/channels/${dm.channelId}/messages/${dm.id}`))).toBe(notHere);
  });
});

describe('reactions', () => {
  it('accepts reactions with up to 20 existing emojis where the bot may react', async () => {
    const { id } = server.people.sends({ from: ada, channel: general, text: 'x' });
    const at = (emoji: string) =>
      `/channels/${general.id}/messages/${id}/reactions/${encodeURIComponent(emoji)}/@me`;
    for (const emoji of ['👍', '❤', '❤️', server.world.addEmoji(team, 'parrot')])
      expect((await call('PUT', at(emoji))).status).toBe(204);
    expect(await refusalOf(call('PUT', at('nope')))).toBe('400 10014 Unknown Emoji');
    expect(await refusalOf(call('PUT', at('parrot:12345')))).toBe('400 10014 Unknown Emoji');
    expect((await call('DELETE', at('👍'))).status).toBe(204);
    server.places.denies(general, 'addReactions');
    expect(await refusalOf(call('PUT', at('🔥')))).toBe('403 50013 Missing Permissions');
    // Joining an existing reaction doesn't need permission to add one.
    server.people.reacts(server.world.message(general.id, id), ada, '🎉');
    expect((await call('PUT', at('🎉'))).status).toBe(204);
  });
});

describe('the list of messages', () => {
  const list = (query: string) => call('GET', `/channels/${general.id}/messages?${query}`);
  const texts = async (query: string) => listOf(await list(query)).map(({ content }) => content);

  it('lists messages newest first; after an id, the oldest that follow it', async () => {
    const sent = [1, 2, 3, 4, 5].map((n) =>
      server.people.sends({ from: ada, channel: general, text: `${n}` }),
    );
    expect(await texts('limit=2')).toEqual(['5', '4']);
    expect(await texts(`after=${sent[0]?.id}&limit=2`)).toEqual(['3', '2']);
    expect(await texts(`before=${sent[3]?.id}&limit=2`)).toEqual(['3', '2']);
    expect(await texts(`around=${sent[2]?.id}&limit=2`)).toEqual(['3', '2']);
    expect(await texts('after=0')).toHaveLength(5);
    expect(await bodyText(list('limit=101'))).toContain('less than or equal to 100');
    expect(await bodyText(list('limit=0'))).toContain('NUMBER_TYPE_MIN');
    expect((await list('after=1&before=2')).status).toBe(400);
    expect(await bodyText(list('after=yesterday'))).toContain('is not snowflake');
    server.places.denies(general, 'readMessageHistory');
    expect(await texts('limit=2')).toEqual([]);
  });

  it('lists messages without guild and member, unlike the gateway', async () => {
    server.people.sends({ from: ada, channel: general, text: 'x' });
    const [message] = listOf(await list(''));
    for (const field of ['guild_id', 'member', 'channel_type']) expect(message).not.toHaveProperty(field);
  });

  it('lists no content without MessageContent, except of own messages, DMs and mentions', async () => {
    await begin({ privileged: { messageContent: false } });
    server.people.sends({ from: ada, channel: general, text: 'secret' });
    server.people.sends({ from: ada, channel: general, text: `<@${server.bot.id}> hi` });
    await post({ content: 'own' });
    expect(await texts('')).toEqual(['own', `<@${server.bot.id}> hi`, '']);
  });
});
