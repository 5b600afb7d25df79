import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { plainText } from '#contracts/formatted-text.ts';
import { messageId, partKey } from '#contracts/ids.ts';
import { discordRates } from '../../platforms/discord/rates.ts';
import { anOggOpus } from '../../support/ogg-opus.ts';
import { recordingLog } from '../../support/silent-log.ts';
import { aDiscordStage, aText, type DiscordStage, forever, replyingTo } from './discord-stage.ts';

const onSend = { route: 'POST /channels/:channel/messages' };

describe('a send', () => {
  it('repeats a send whose answer was lost under its nonce, from another process too, so it appears once', async () => {
    const { server, dm, route, newAdapter, posts } = await aDiscordStage();
    const outbound = aText(route(dm.id), 'hello');
    const first = newAdapter();
    await first.identify(forever);
    server.fault({ kind: 'drop-answer' }, onSend);
    expect(await first.send(outbound, forever)).toMatchObject({ kind: 'unknown' });
    const second = newAdapter();
    await second.identify(forever);
    const [standing] = server.botMessages(dm.id);
    expect(await second.send(outbound, forever)).toEqual({ kind: 'sent', receipts: [standing?.id] });
    expect(server.texts(dm.id)).toEqual(['parley: hello']);
    // The library's own retries would have made more calls than these.
    expect(posts().map(({ isRepeat = false }) => isRepeat)).toEqual([false, true]);
  });

  it.each([
    ['is answered 502', { kind: 'lose-answer' }],
    ['is not answered', { kind: 'hang', isApplied: true }],
    ['is cut off', { kind: 'cut' }],
  ] as const)('makes a send once if it %s, and reports it as unknown', async (_, fault) => {
    const { server, dm, route, newAdapter, posts } = await aDiscordStage();
    const adapter = newAdapter({ callTimeoutMs: 1000 });
    await adapter.identify(forever);
    server.fault(fault, onSend);
    expect(await adapter.send(aText(route(dm.id), 'hello'), forever)).toMatchObject({ kind: 'unknown' });
    expect(posts()).toHaveLength(1);
  });

  it('looks for a sent message if Discord has forgotten its nonce', async () => {
    const { server, dm, ada, route, newAdapter } = await aDiscordStage({ nonceWindowMs: 0 });
    // It doesn't receive, because that would read the history as well.
    const adapter = newAdapter();
    await adapter.identify(forever);
    const outbound = aText(route(dm.id), 'hello');
    const since = Date.now();
    server.people.sends({ from: ada, text: 'anybody there?' });
    expect(await adapter.lookup.find(outbound, since, forever)).toEqual({
      kind: 'candidates',
      messageIds: [],
    });
    server.fault({ kind: 'drop-answer' }, onSend);
    await adapter.send(outbound, forever);
    server.people.sends({ from: ada, text: 'hello' });
    const standing = server.botMessages(dm.id).map(({ id }) => id);
    expect(await adapter.lookup.find(outbound, since, forever)).toEqual({
      kind: 'candidates',
      messageIds: standing,
    });
    server.fault({ kind: 'page', status: 502 }, { route: 'GET /channels/:channel/messages' });
    expect(await adapter.lookup.find(outbound, since, forever)).toMatchObject({ kind: 'later' });
  });

  it('keeps a send unknown if the conversation cannot be read', async () => {
    const { server, general, route, newAdapter } = await aDiscordStage({ nonceWindowMs: 0 });
    const adapter = newAdapter();
    await adapter.identify(forever);
    const outbound = aText(route(general.id), 'hello');
    const since = Date.now();
    server.fault({ kind: 'drop-answer' }, onSend);
    await adapter.send(outbound, forever);
    server.places.denies(general, 'readMessageHistory');
    expect(await adapter.lookup.find(outbound, since, forever)).toMatchObject({ kind: 'unknown' });
  });

  it('pings nobody in a send or an edit, be it by name, by role or by a quote', async () => {
    const { server, ada, guild, general, route, begin } = await aDiscordStage();
    const { adapter } = await begin();
    const role = server.world.addRole(guild, 'everybody');
    const asked = server.people.sends({ from: ada, channel: general, text: 'who?' });
    const text = `<@${ada.id}> <@&${role.id}> @everyone @here`;
    const quoting = replyingTo(route(general.id), asked.id);
    const result = await adapter.send(aText(quoting, text), forever);
    const [id = ''] = result.kind === 'sent' ? result.receipts : [];
    const content = { kind: 'edit', messageId: messageId(id), text: plainText(`${text}!`) } as const;
    await adapter.send({ key: partKey('edit'), route: quoting, content }, forever);
    expect(server.botMessages(general.id)).toMatchObject([{ replyTo: asked.id, history: [{}] }]);
    expect(server.pings).toEqual([]);
    expect(server.refusals).toEqual([]);
  });

  it('sends into a thread, which reopens, and to the channel only if everybody could read the thread', async () => {
    const { server, ada, general, route, begin } = await aDiscordStage();
    const { adapter } = await begin();
    const failureIn = async (id: string, text: string) => {
      const result = await adapter.send(aText(route(general.id, id), text), forever);
      return result.kind === 'failed' ? result.failure.kind : result.kind;
    };
    const thread = server.places.startsThread({ parent: general, name: 'plans', owner: ada });
    const secret = server.places.startsThread({
      parent: general,
      name: 'secret',
      owner: ada,
      isPrivate: true,
    });
    secret.thread?.members.add(server.bot.id);
    server.places.archives(thread);
    expect(await failureIn(thread.id, 'one')).toBe('sent');
    expect(server.botMessages(thread.id).map(({ text }) => text)).toEqual(['one']);
    for (const one of [thread, secret]) server.places.archives(one, { isLocked: true });
    expect(await failureIn(thread.id, 'two')).toBe('thread-gone');
    expect(await failureIn(secret.id, 'two')).toBe('rejected');
    server.fault({ kind: 'page', status: 502 }, { route: 'GET /channels/:channel' });
    expect(await failureIn(secret.id, 'three')).toBe('retry');
    // By now it is unknown which of the two it was.
    server.places.deletesThread(secret);
    expect(await failureIn(secret.id, 'four')).toBe('rejected');
    expect(server.botMessages(general.id)).toEqual([]);
  });

  it('sends without the quote if the message cannot be quoted', async () => {
    const { server, ada, general, route, begin } = await aDiscordStage();
    const { adapter } = await begin();
    const asked = server.people.sends({ from: ada, channel: general, text: 'who?' });
    server.places.denies(general, 'readMessageHistory');
    const result = await adapter.send(aText(replyingTo(route(general.id), asked.id), 'me'), forever);
    expect(result).toMatchObject({ kind: 'sent' });
    expect(server.botMessages(general.id)).toMatchObject([{ text: 'me', replyTo: undefined }]);
  });

  it('leaves a send beyond the rate limit to the outbox without a call', async () => {
    const { server, dm, route, begin, posts } = await aDiscordStage({ rates: discordRates });
    const { adapter } = await begin();
    const results = [];
    for (let count = 0; count < 7; count += 1)
      results.push(await adapter.send(aText(route(dm.id), `m${count}`), forever));
    expect(results.slice(0, 5).every(({ kind }) => kind === 'sent')).toBe(true);
    expect(results[5]).toMatchObject({ kind: 'retry', afterMs: expect.any(Number) });
    expect(posts()).toHaveLength(5);
    expect(server.refusals).toEqual([]);
  });

  it.each([
    ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1:1/' } }, 'retry', 60_000],
    ['a page', { status: 200, headers: { 'content-type': 'text/html' } }, 'unknown', 0],
    ['a ban without a time', { status: 429, headers: { 'content-type': 'text/html' } }, 'retry', 60_000],
  ] as const)(
    'does not count a send or an edit answered with %s as done',
    async (_, answer, kind, afterMs) => {
      const { server, dm, route, newAdapter } = await aDiscordStage();
      const adapter = newAdapter();
      await adapter.identify(forever);
      server.fault({ kind: 'answer', body: '<html>', ...answer }, { times: 4 });
      expect(await adapter.send(aText(route(dm.id), 'hello'), forever)).toMatchObject({
        kind,
        ...(kind === 'retry' && { afterMs }),
      });
      const content = { kind: 'edit', messageId: messageId('7'), text: plainText('bye') } as const;
      expect(
        await adapter.send({ key: partKey('edit'), route: route(dm.id), content }, forever),
      ).toMatchObject({
        kind: 'retry',
        afterMs,
      });
    },
  );

  it('gives up a send that keeps being refused while Discord answers other calls', async () => {
    const { server, dm, route, newAdapter } = await aDiscordStage();
    const adapter = newAdapter();
    await adapter.identify(forever);
    const page = { kind: 'page', status: 403 } as const;
    const times = Number.POSITIVE_INFINITY;
    const attempts = async (count: number) => {
      const results = [];
      for (let attempt = 0; attempt < count; attempt += 1)
        results.push(await adapter.send(aText(route(dm.id), 'what a filter refuses'), forever));
      return results;
    };
    for (const refused of ['POST /channels/:channel/messages', 'GET /users/@me'])
      server.fault(page, { route: refused, times });
    const inOutage = await attempts(11);
    expect(new Set(inOutage.map(({ kind }) => kind))).toEqual(new Set(['retry']));
    server.clearFaults();
    server.fault(page, { ...onSend, times });
    const alone = await attempts(10);
    expect(alone.slice(0, 9).every(({ kind }) => kind === 'retry')).toBe(true);
    expect(alone[9]).toMatchObject({ kind: 'failed', failure: { kind: 'rejected' } });
    const { kind } = await adapter.send(aText(route(dm.id), 'another'), forever);
    expect(kind).toBe('retry');
  });

  it('reports a conversation that the bot may not write in as unreachable, and a revoked token', async () => {
    const { server, general, dm, route, begin } = await aDiscordStage();
    const { adapter } = await begin();
    server.places.denies(general, 'sendMessages');
    expect(await adapter.send(aText(route(general.id), 'x'), forever)).toMatchObject({
      failure: { kind: 'unreachable' },
    });
    server.revokeToken();
    expect(await adapter.send(aText(route(dm.id), 'x'), forever)).toMatchObject({
      failure: { kind: 'unauthorised' },
    });
  });
});

describe('the token', () => {
  it('keeps the token out of logs and results, whatever fails', async () => {
    const { log, lines } = recordingLog();
    const { server, dm, route, newAdapter } = await aDiscordStage();
    const adapter = newAdapter({ log, callTimeoutMs: 1000 });
    await adapter.identify(forever);
    const faults = [
      { kind: 'refuse', status: 400, code: 1, message: 'Bad Request' },
      { kind: 'refuse', status: 401, code: 0, message: '401: Unauthorized' },
      { kind: 'page', status: 403 },
      { kind: 'lose-answer' },
      { kind: 'cut' },
    ] as const;
    for (const fault of faults) {
      server.fault(fault, onSend);
      lines.push(JSON.stringify(await adapter.send(aText(route(dm.id), 'x', fault.kind), forever)));
    }
    await server.goAway();
    lines.push(JSON.stringify(await adapter.send(aText(route(dm.id), 'x', 'away'), forever)));
    lines.push(String(await newAdapter({ log }).identify(forever).catch(String)));
    expect(lines.length).toBeGreaterThan(faults.length * 2);
    expect(lines.filter((line) => line.includes(server.token))).toEqual([]);
  });
});

describe('files', () => {
  const bytes = Buffer.from('a plan');

  it('sends a file with its name, repeated under one nonce, so it appears once', async () => {
    const { server, dm, dataDir, route, begin } = await aDiscordStage();
    const { adapter } = await begin();
    const path = join(dataDir, 'plan.txt');
    await writeFile(path, bytes);
    const content = { kind: 'media', path, name: 'plan.txt', mimeType: 'text/plain' } as const;
    const outbound = { key: partKey('file'), route: route(dm.id), content };
    server.fault({ kind: 'drop-answer' }, onSend);
    expect(await adapter.send(outbound, forever)).toMatchObject({ kind: 'unknown' });
    expect(await adapter.send(outbound, forever)).toMatchObject({ kind: 'sent' });
    expect(server.botMessages(dm.id)).toMatchObject([{ files: [{ name: 'plan.txt', sizeBytes: 6 }] }]);
  });

  it("sends a file while Signal's HTTP client is loaded, too", async () => {
    await import('undici');
    const { server, dm, dataDir, route, begin } = await aDiscordStage();
    const { adapter } = await begin();
    const path = join(dataDir, 'plan.txt');
    await writeFile(path, bytes);
    const content = { kind: 'media', path, name: 'plan.txt', mimeType: 'text/plain' } as const;
    const outbound = { key: partKey('file'), route: route(dm.id), content };
    expect(await adapter.send(outbound, forever)).toMatchObject({ kind: 'sent' });
    expect(server.botMessages(dm.id)).toMatchObject([{ files: [{ name: 'plan.txt', sizeBytes: 6 }] }]);
  });

  it('sends several files in one message, and finds it again after an answer was lost', async () => {
    const { server, dm, dataDir, route, begin } = await aDiscordStage();
    const { adapter } = await begin();
    const files = ['a.png', 'b.pdf'].map((name) => ({
      ...{ path: join(dataDir, name), name, mimeType: 'image/png' },
    }));
    for (const { path, name } of files) await writeFile(path, Buffer.alloc(70_000, name));
    const content = { kind: 'media', files, caption: plainText('both') } as const;
    const outbound = { key: partKey('album'), route: route(dm.id), content };
    server.fault({ kind: 'drop-answer' }, onSend);
    expect(await adapter.send(outbound, forever)).toMatchObject({ kind: 'unknown' });
    const [shown] = server.botMessages(dm.id);
    expect(await adapter.send(outbound, forever)).toEqual({ kind: 'sent', receipts: [shown?.id] });
    expect(server.botMessages(dm.id)).toMatchObject([
      { text: 'both', files: [{ name: 'a.png' }, { name: 'b.pdf', sizeBytes: 70_000 }] },
    ]);
    const found = await adapter.lookup.find(outbound, Date.now() - 1000, forever);
    expect(found).toEqual({ kind: 'candidates', messageIds: [shown?.id] });
    const bytes = [...((shown?.files[1]?.bytes() ?? []) as Iterable<Uint8Array>)];
    expect(Buffer.concat(bytes).equals(Buffer.alloc(70_000, 'b.pdf'))).toBe(true);
  });

  it('refuses files that are too large together', async () => {
    const { dm, dataDir, route, begin } = await aDiscordStage();
    const { adapter } = await begin();
    const files = ['a', 'b'].map((name) => ({ path: join(dataDir, name), name, mimeType: 'image/png' }));
    for (const { path } of files) await writeFile(path, Buffer.alloc(6_000_000));
    const outbound = {
      key: partKey('album'),
      route: route(dm.id),
      content: { kind: 'media', files } as const,
    };
    expect(await adapter.send(outbound, forever)).toMatchObject({
      kind: 'failed',
      failure: { kind: 'rejected' },
    });
  });
});

describe('voice messages', () => {
  const aVoice = async ({ dataDir, route, dm }: DiscordStage, bytes: Buffer) => {
    const path = join(dataDir, 'hello.ogg');
    await writeFile(path, bytes);
    const content = { kind: 'media', path, name: 'hello.ogg', mimeType: 'audio/ogg', asVoice: true } as const;
    return { key: partKey('voice'), route: route(dm.id), content };
  };

  it('sends Ogg Opus as a voice message with its length and a waveform', async () => {
    const stage = await aDiscordStage();
    const { adapter } = await stage.begin();
    const packets = Array.from({ length: 600 }, (_, index) => (index < 300 ? 30 : 300));
    expect(await adapter.send(await aVoice(stage, anOggOpus(packets)), forever)).toMatchObject({
      kind: 'sent',
    });
    const [shown] = stage.server.botMessages(stage.dm.id);
    expect(shown).toMatchObject({ text: '', flags: 8192, files: [{ fields: { duration_secs: 12 } }] });
    const points = Buffer.from(String(shown?.files[0]?.fields?.waveform), 'base64');
    expect(points).toHaveLength(256);
    expect([points[0], points[255]]).toEqual([26, 255]);
  });

  it.each([
    ['voice messages are forbidden in the channel', 50_173],
    ['Discord lacks something about it', 50_161],
    ['its flags are not accepted', 50_035],
  ])('sends a voice message as a file if %s', async (_why, code) => {
    const stage = await aDiscordStage();
    const { adapter } = await stage.begin();
    stage.server.fault({ kind: 'refuse', status: 400, code, message: 'no' }, onSend);
    const outbound = await aVoice(stage, anOggOpus([40, 50, 60]));
    expect(await adapter.send(outbound, forever)).toMatchObject({ kind: 'sent' });
    const [shown] = stage.server.botMessages(stage.dm.id);
    expect(shown).toMatchObject({ flags: 4, files: [{ name: 'hello.ogg' }] });
    expect(shown?.files[0]).not.toHaveProperty('fields');
  });

  it.each([
    ['damaged', Buffer.from('OggS, but no more than that, and not even a second page')],
    ['without sound', anOggOpus([])],
  ])('sends audio that is %s as a file', async (_why, bytes) => {
    const stage = await aDiscordStage();
    const { adapter } = await stage.begin();
    expect(await adapter.send(await aVoice(stage, bytes), forever)).toMatchObject({ kind: 'sent' });
    expect(stage.server.botMessages(stage.dm.id)).toMatchObject([{ flags: 4 }]);
    expect(stage.posts()).toHaveLength(1);
  });
});
