import { describe, expect, it } from 'vitest';
import { ada, call, general, passes, post, server, team, useATeam } from './a-team.ts';
import { bodyText, listOf, refusalOf } from './raw-client.ts';
import { channelTypes } from './types.ts';

useATeam();

describe('threads', () => {
  it('reopens an archived thread for a message unless it is locked, and refuses edits in it', async () => {
    const thread = server.places.startsThread({ owner: ada, parent: general, name: 'side' });
    const { body } = await post({ content: 'one' }, thread);
    server.places.archives(thread);
    const path = `/channels/${thread.id}/messages/${String(body.id)}`;
    expect(await refusalOf(call('PATCH', path, { content: 'two' }))).toBe('400 50083 Thread is archived');
    expect((await call('GET', `/guilds/${team.id}/threads/active`)).body.threads).toEqual([]);
    expect((await call('GET', `/channels/${general.id}/threads/archived/public`)).body).toMatchObject({
      threads: [{ id: thread.id }],
      has_more: false,
    });
    expect((await post({ content: 'three' }, thread)).status).toBe(200);
    expect((await call('GET', `/guilds/${team.id}/threads/active`)).body).toMatchObject({
      threads: [{ id: thread.id, parent_id: general.id }],
      members: [{ id: thread.id, user_id: server.bot.id }],
    });
    server.places.archives(thread, { isLocked: true });
    expect(await refusalOf(post({ content: 'four' }, thread))).toBe('400 50083 Thread is archived');
  });

  it('starts a thread with the message it belongs to, and hides private ones', async () => {
    const asked = server.people.sends({ from: ada, channel: general, text: 'the question' });
    const made = await call('POST', `/channels/${general.id}/messages/${asked.id}/threads`, { name: 'side' });
    expect(made).toMatchObject({ status: 201, body: { id: asked.id, type: 11, parent_id: general.id } });
    expect(
      await refusalOf(call('POST', `/channels/${general.id}/messages/${asked.id}/threads`, { name: 'x' })),
    ).toBe('400 160004 A thread has already been created for this message');
    expect(listOf(await call('GET', `/channels/${asked.id}/messages`))).toMatchObject([
      { type: 21, content: '', referenced_message: { content: 'the question' } },
    ]);
    const secret = server.places.startsThread({ owner: ada, parent: general, name: 's', isPrivate: true });
    expect(await refusalOf(post({ content: 'x' }, secret))).toBe('403 50001 Missing Access');
  });

  it("gives the first message of a forum post the post's id", async () => {
    const forum = server.world.addChannel(team, 'ideas', channelTypes.forum);
    const body = { name: 'idea', message: { content: 'text' } };
    const made = await call('POST', `/channels/${forum.id}/threads`, body);
    expect(made.body).toMatchObject({ type: 11, parent_id: forum.id, message: { id: made.body.id } });
    expect(await bodyText(call('POST', `/channels/${forum.id}/threads`, { name: 'idea' }))).toContain(
      'required',
    );
  });
});

describe('files', () => {
  const form = (files: readonly (readonly [string, Uint8Array<ArrayBuffer>])[], payload: object = {}) => {
    const data = new FormData();
    data.set('payload_json', JSON.stringify(payload));
    for (const [index, [name, bytes]] of files.entries())
      data.set(`files[${index}]`, new Blob([bytes]), name);
    return call('POST', `/channels/${general.id}/messages`, data);
  };

  it('serves files at a link that is valid for a day', async () => {
    const attachments = [{ id: '0', description: 'a list' }];
    const { body } = await form([['a b.txt', Buffer.from('some text')]], { content: 'see', attachments });
    const [file] = body.attachments as { url: string }[];
    expect(file).toMatchObject({ filename: 'a b.txt', size: 9, description: 'a list' });
    const url = file?.url ?? '';
    expect(await (await fetch(url)).text()).toBe('some text');
    expect((await fetch(url.replace('hm=', 'hm=0'))).status).toBe(404);
    passes(25 * 3600 * 1000);
    expect((await fetch(url)).status).toBe(404);
    const again = await call('GET', `/channels/${general.id}/messages/${String(body.id)}`);
    expect((await fetch((again.body.attachments as { url: string }[])[0]?.url ?? '')).status).toBe(200);
    expect(server.calls[0]).toMatchObject({
      files: [{ name: 'a b.txt', sizeBytes: 9 }],
      body: { content: 'see' },
    });
  });

  it('accepts up to ten files of up to 10 MiB, and no name without its file', async () => {
    const small = Buffer.from('x');
    const many = Array.from({ length: 11 }, (_, n) => [`${n}.txt`, small] as const);
    expect(await bodyText(form(many))).toContain('10 or fewer');
    const large = [['large.bin', new Uint8Array(10 * 1024 * 1024 + 1)]] as const;
    expect(await refusalOf(form(large))).toBe('413 40005 Request entity too large');
    expect(await bodyText(form([], { content: 'x', attachments: [{ id: 0 }] }))).toContain('files[0]');
    server.places.denies(general, 'attachFiles');
    expect(await refusalOf(form([['a.txt', small]]))).toBe('403 50013 Missing Permissions');
  });
});
