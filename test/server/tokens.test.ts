import { afterEach, expect, it } from 'vitest';
import { type TokenScope, tokenScopes } from '#contracts/token-scope.ts';
import { operations } from '../../src/operations/list.ts';
import { readTokens } from '../../src/store/sign-ins/tokens.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { aServer, type RunningServer, send } from './a-server.ts';

/** Which operations each scope opens; no scope opens any other. */
const opened: Readonly<Record<TokenScope, readonly string[]>> = {
  chat: [],
  read: [
    ...['status', 'commands', 'sessions', 'sessions/show', 'sessions/messages', 'queue', 'queue/text'],
    ...['lanes', 'why', 'outbox', 'notices', 'approvals', 'subagents', 'subagents/info', 'subagents/log'],
    ...['hooks', 'agent/busy', 'agents', 'tasks', 'tasks/show'],
  ],
  operate: [
    ...[
      'reload',
      'agent',
      'agent/steer',
      'agent/summarize',
      'agent/wait',
      'agent/cancel',
      'queue/cancel',
      'queue/promote',
      'queue/edit',
    ],
    ...['lanes/mode', 'outbox/retry', 'outbox/drop', 'notices/dismiss', 'subagents/steer', 'subagents/stop'],
    ...['tasks/send', 'tasks/steer', 'tasks/stop', 'tasks/retry'],
  ],
};
const openedRoutes: Readonly<Record<TokenScope, readonly string[]>> = {
  chat: [],
  read: ['GET /openapi.json', 'GET /metrics'],
  operate: [],
};

describeEachDatabase('tokens', (store, beside) => {
  const running: RunningServer[] = [];
  let now = Date.now();
  const clock = { now: () => now, wait: async () => undefined };
  const start = async (deps: Parameters<typeof aServer>[0] = {}) => {
    const server = await aServer({ store: store(), clock, ...deps });
    running.push(server);
    return server;
  };
  afterEach(async () => {
    for (const { server } of running.splice(0)) await server.close();
    for (const table of ['tokens', 'lockouts']) await beside.sql(`delete from ${table}`);
    now = Date.now();
  });

  const call = async (
    at: RunningServer,
    path: string,
    { secret = at.token, body = undefined as unknown } = {},
  ) => {
    const isPost = body !== undefined;
    const answer = await send({
      ...{ port: at.port, path, method: isPost ? 'POST' : 'GET' },
      headers: {
        authorization: `Bearer ${secret}`,
        ...(isPost && { 'content-type': 'application/json', 'x-parley': '1' }),
      },
      ...(isPost && { body: JSON.stringify(body) }),
    });
    const { code, text } = JSON.parse(answer.body.startsWith('{') ? answer.body : '{}').error ?? {};
    return { ...answer, code, text };
  };
  const create = async (at: RunningServer, form: object) => {
    const { status, body } = await call(at, '/api/tokens/create', { body: form });
    expect(status, body).toBe(200);
    return JSON.parse(body) as { readonly id: string; readonly secret: string };
  };

  it('opens exactly the operations of its scopes, and no other route', async () => {
    const at = await start();
    for (const scope of tokenScopes) {
      const { secret } = await create(at, { name: scope, scopes: [scope] });
      const mayCall: string[] = [];
      for (const { name, method } of operations) {
        // Invalid input is refused behind the check of the scope.
        const input = method === 'POST' ? { body: { unknown: 1 } } : {};
        const answer = await call(at, `/api/${name}?waitMs=x`, { secret, ...input });
        if (answer.status !== 403) mayCall.push(name);
        else expect(answer.code, name).toBe('scope_missing');
      }
      expect(mayCall.toSorted(), scope).toEqual(opened[scope].toSorted());
      for (const route of [
        'GET /openapi.json',
        'GET /metrics',
        'POST /api/sign-out',
        'GET /nowhere',
        'POST /uploads/web',
      ]) {
        const [method, path = ''] = route.split(' ');
        const answer = await call(at, path, { secret, ...(method === 'POST' && { body: {} }) });
        expect(answer.status === 403, `${scope}: ${route}`).toBe(!openedRoutes[scope].includes(route));
      }
    }
  });

  it('answers alike for routes that exist and those that do not', async () => {
    const at = await start();
    const { secret } = await create(at, { name: 'curious', scopes: ['chat'] });
    const [there, nowhere] = [
      await call(at, '/api/pair', { secret }),
      await call(at, '/api/nowhere', { secret }),
    ];
    expect([there.status, there.body]).toEqual([nowhere.status, nowhere.body]);
  });

  it('refuses a wrong, an expired and a revoked token with the same words', async () => {
    const at = await start();
    const expiring = await create(at, { name: 'for a day', scopes: ['read'], days: 1 });
    const revoked = await create(at, { name: 'revoked', scopes: ['read'] });
    for (const { secret } of [expiring, revoked])
      expect((await call(at, '/api/status', { secret })).status).toBe(200);
    now += 86_400_000 + 1000;
    expect((await call(at, '/api/tokens/revoke', { body: { which: 'revoked' } })).status).toBe(200);
    const wrong = `${expiring.secret.slice(0, -1)}${expiring.secret.endsWith('A') ? 'B' : 'A'}`;
    const answers = [];
    for (const secret of [wrong, expiring.secret, revoked.secret, 'parley_x'])
      answers.push(await call(at, '/api/status', { secret }));
    expect(new Set(answers.map(({ status, body }) => `${status} ${body}`))).toEqual(
      new Set(['401 {"error":{"code":"wrong_token"}}']),
    );
    expect((await call(at, '/api/tokens/revoke', { body: { which: 'revoked' } })).status).toBe(404);
  });

  it('counts wrong tokens against their source, but always accepts a right one', async () => {
    const at = await start();
    const { secret } = await create(at, { name: 'right', scopes: ['read'] });
    const wrong = `parley_${'x'.repeat(43)}`;
    for (let i = 0; i < 10; i++) await call(at, '/api/status', { secret: wrong });
    expect((await call(at, '/api/status', { secret: wrong })).status).toBe(429);
    expect((await call(at, '/api/status', { secret })).status).toBe(200);
  });

  it('stores no secret and lists none', async () => {
    const at = await start();
    const { id, secret } = await create(at, { name: 'script', scopes: ['operate', 'chat'], days: 30 });
    const listed = await call(at, '/api/tokens');
    expect(JSON.parse(listed.body).tokens).toEqual([
      {
        ...{ id, name: 'script', scopes: ['chat', 'operate'], createdBy: 'console' },
        ...{ createdAt: expect.any(Number), expiresAt: expect.any(Number) },
      },
    ]);
    const rows = JSON.stringify(
      await store().read(
        { query: 'all tokens', run: ({ db }) => db.selectFrom('tokens').selectAll().execute() },
        {},
      ),
    );
    for (const text of [listed.body, rows]) {
      expect(text).toContain(id);
      expect(text).not.toContain(secret.slice(7));
    }
  });

  it('keeps a name for one live token', async () => {
    const at = await start();
    await create(at, { name: 'script', scopes: ['chat'] });
    const again = await call(at, '/api/tokens/create', { body: { name: 'script', scopes: ['chat'] } });
    expect([again.status, again.text]).toEqual([409, expect.stringContaining('tokens revoke "script"')]);
    await call(at, '/api/tokens/revoke', { body: { which: 'script' } });
    await create(at, { name: 'script', scopes: ['chat'] });
    for (const form of [
      { name: '', scopes: ['chat'] },
      { name: 'a\nb', scopes: ['chat'] },
      { name: 'x', scopes: [] },
    ])
      expect((await call(at, '/api/tokens/create', { body: form })).status).toBe(400);
  });

  it('records when it was last used, at most once a minute', async () => {
    const at = await start();
    const { secret } = await create(at, { name: 'busy', scopes: ['read'] });
    const used = async () => {
      // What is written along is committed with the next write.
      await create(at, { name: `other ${Math.random().toString(36).slice(2)}`, scopes: ['read'] });
      return (await store().read(readTokens, {})).find(({ name }) => name === 'busy')?.lastUsedAt;
    };
    await call(at, '/api/status', { secret });
    const first = now;
    await expect.poll(used).toBe(first);
    now += 59_000;
    await call(at, '/api/status', { secret });
    expect(await used()).toBe(first);
    now += 1_000;
    await call(at, '/api/status', { secret });
    await expect.poll(used).toBe(now);
  });

  it('cuts the open requests of a revoked token, and no others', async () => {
    const changes = { current: () => 1, waitAfter: () => new Promise<undefined>(() => undefined) };
    const { someOperations } = await import('../support/some-operations.ts');
    const at = await start({ operations: someOperations({ lanes: { changes, leaseMs: 1 } }) });
    const [ended, kept] = [
      await create(at, { name: 'ended', scopes: ['read'] }),
      await create(at, { name: 'kept', scopes: ['read'] }),
    ];
    const wait = ({ secret }: { readonly secret: string }) =>
      call(at, '/api/lanes?since=1&waitMs=30000', { secret }).then(
        () => 'answered',
        () => 'cut',
      );
    const [cut, open] = [wait(ended), wait(kept)];
    await call(at, '/api/tokens/revoke', { body: { which: ended.id } });
    expect(await cut).toBe('cut');
    expect(await Promise.race([open, 'open'])).toBe('open');
  });

  it('answers 503 while the store cannot tell whose token it is', async () => {
    const at = await start();
    const { secret } = await create(at, { name: 'later', scopes: ['read'] });
    const away = { ...store(), read: () => Promise.reject(new Error('away')) };
    const other = await start({ store: away });
    expect((await call(other, '/api/commands', { secret })).status).toBe(503);
    expect((await call(other, '/api/commands')).status).toBe(200);
  });
});
