import { describe, expect, it } from 'vitest';
import { ada, call, general, passes, post, server, useATeam } from './a-team.ts';
import { bodyText, listOf, refusalOf } from './raw-client.ts';

useATeam();

describe('commands', () => {
  const path = () => `/applications/${server.bot.id}/commands`;

  it('replaces all commands at once, keeps ids by name, and fills in defaults', async () => {
    const stop = { name: 'stop', description: 'Stops it', options: [] };
    const note = { type: 3, name: 'note', description: 'Why', required: false };
    const first = await call('PUT', path(), [stop, { name: 'new', description: 'New', options: [note] }]);
    const [one, two] = listOf(first);
    expect(one).toMatchObject({ type: 1, default_member_permissions: null, application_id: server.bot.id });
    expect(one).not.toHaveProperty('options');
    expect(two?.options).toEqual([{ type: 3, name: 'note', description: 'Why' }]);
    const second = await call('PUT', path(), [stop]);
    expect(listOf(second)[0]?.id).toBe(one?.id);
    expect((await call('GET', path())).body).toHaveLength(1);
    expect((await call('POST', path(), { ...stop, description: 'Ends it' })).status).toBe(200);
    expect((await call('POST', path(), { name: 'help', description: 'Helps' })).status).toBe(201);
  });

  it.each([
    ['a name in capitals', { name: 'Stop', description: 'x' }, 'APPLICATION_COMMAND_INVALID_NAME'],
    ['no description', { name: 'stop' }, 'BASE_TYPE_REQUIRED'],
    [
      'a description that is too long',
      { name: 'stop', description: 'x'.repeat(101) },
      'BASE_TYPE_BAD_LENGTH',
    ],
    [
      'a needed option behind one that is not',
      {
        name: 'stop',
        description: 'x',
        options: [
          { type: 3, name: 'a', description: 'a' },
          { type: 3, name: 'b', description: 'b', required: true },
        ],
      },
      'APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID',
    ],
  ])('refuses commands with %s', async (_, command, code) => {
    expect(await bodyText(call('PUT', path(), [command]))).toContain(code);
  });

  it('refuses two commands of one name', async () => {
    const twice = [1, 2].map((n) => ({ name: 'stop', description: `${n}` }));
    expect(await bodyText(call('PUT', path(), twice))).toContain('DUPLICATE_NAME');
  });
});

describe('interactions', () => {
  const use = async () => {
    const path = `/applications/${server.bot.id}/commands`;
    await call('PUT', path, [{ name: 'status', description: 'Tells' }]);
    return server.people.uses({ from: ada, name: 'status', channel: general });
  };
  const answer = (one: { id: string; token: string }, body: object) =>
    call('POST', `/interactions/${one.id}/${one.token}/callback?with_response=true`, body, '');
  const hook = (token: string, rest = '') => `/webhooks/${server.bot.id}/${token}${rest}`;

  it('accepts one answer to an interaction, within 3 seconds', async () => {
    const used = await use();
    passes(2999);
    const first = await answer(used, { type: 4, data: { content: 'here' } });
    expect(first).toMatchObject({
      status: 200,
      body: { resource: { type: 4, message: { content: 'here' } } },
    });
    const twice = '400 40060 Interaction has already been acknowledged.';
    expect(await refusalOf(answer(used, { type: 4, data: { content: 'again' } }))).toBe(twice);
    const late = server.people.uses({ from: ada, name: 'status', channel: general });
    passes(3001);
    expect(await refusalOf(answer(late, { type: 5 }))).toBe('404 10062 Unknown interaction');
    expect(server.interactions.failed(late)).toBe(true);
    expect(await refusalOf(call('POST', hook(late.token), { content: 'x' }))).toBe(
      '404 10015 Unknown Webhook',
    );
  });

  it('accepts edits and follow-ups for 15 minutes; the first one fills a deferred answer', async () => {
    const used = await use();
    await answer(used, { type: 5, data: { flags: 64 } });
    const filled = await call('POST', hook(used.token), { content: 'filled' }, '');
    await call('PATCH', hook(used.token, '/messages/@original'), { content: 'edited' }, '');
    const more = await call('POST', hook(used.token), { content: '@everyone', flags: 64 }, '');
    expect(server.pings).toEqual([]);
    expect(filled.body.id).not.toBe(more.body.id);
    expect(server.answersTo(used).map((one) => one.text)).toEqual(['edited', '@everyone']);
    expect(server.texts(general.id)).toEqual([]);
    passes(15 * 60 * 1000);
    expect(
      await refusalOf(call('PATCH', hook(used.token, '/messages/@original'), { content: 'x' }, '')),
    ).toBe('401 50027 Invalid Webhook Token');
  });

  it('changes the message of a button only when one was pressed', async () => {
    const used = await use();
    expect(await bodyText(answer(used, { type: 7, data: { content: 'x' } }))).toContain('BASE_TYPE_CHOICES');
    const button = { type: 2, style: 1, label: 'Yes', custom_id: 'yes' };
    const sent = await post({ content: 'sure?', components: [{ type: 1, components: [button] }] });
    const message = server.world.message(general.id, String(sent.body.id));
    await answer(server.people.presses(message, ada, 'yes'), {
      type: 7,
      data: { content: 'done', components: [] },
    });
    expect(server.texts(general.id)).toEqual(['parley: done']);
    expect(() => server.people.presses(message, ada, 'yes')).toThrow(/no button/);
    const nameless = { type: 1, components: [{ type: 2, style: 1, label: 'No' }] };
    expect(await bodyText(post({ content: 'x', components: [nameless] }))).toContain('custom_id');
  });
});
