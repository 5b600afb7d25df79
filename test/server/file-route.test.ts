import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { formatSessionKey } from '#contracts/session-key.ts';
import type { TokenScope } from '#contracts/token-scope.ts';
import { accountId, agentId, channelId, peerId } from '../../src/contracts/ids.ts';
import { newOutgoingName } from '../../src/inbound/media.ts';
import { programAccount } from '../../src/service/program-calls.ts';
import { readTimeline } from '../../src/store/reads/read-timeline.ts';
import { aConversation } from '../store/a-conversation.ts';
import { routeFor } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { aServer } from './a-server.ts';

const png = Buffer.from('\x89PNG\r\n\x1a\n and so on', 'latin1');
const svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>parent.hacked = 1</script></svg>';
const page = '<!doctype html><script>parent.hacked = 1</script>';

describeEachDatabase('files that the agent has sent', (open, { sql }) => {
  /** Returns a server with a media folder, and answers with one file each. */
  async function aHost() {
    const folder = await mkdtemp(join(tmpdir(), 'parley-files-'));
    const mediaDir = join(folder, 'media');
    await mkdir(mediaDir);
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const { server, url, token, signIn } = await aServer({ store: open(), mediaDir });
    onTestFinished(() => server.close());
    const asOwner = { authorization: `Bearer ${token}` };
    const { laneKey, begin, answer } = aConversation(open());
    /** Answers with a file of this name in the media folder. Returns the message's id. */
    const answerWith = async (path: string, { name = 'a.bin', mimeType = 'text/plain' } = {}) => {
      const run = await begin('send it');
      const content = { kind: 'media', path, mimeType, name } as const;
      await answer(run, '', { parts: [{ route: routeFor(run), content, purpose: 'reply' }] });
      const [item] = (await open().read(readTimeline, { laneKey, limit: 100 })).slice(-1);
      expect(item).toMatchObject({ text: '', file: { mimeType, stored: path } });
      return item?.messageId ?? '';
    };
    const sendBytes = async (bytes: string | Buffer, of: { name?: string; mimeType?: string } = {}) => {
      const path = newOutgoingName();
      await writeFile(join(mediaDir, path), bytes);
      return { id: await answerWith(path, of), path };
    };
    const get = (id: string, headers: Record<string, string> = asOwner) =>
      fetch(`${url}/api/file?${new URLSearchParams({ message: id })}`, { headers });
    const create = async (scope: TokenScope) => {
      const made = await fetch(`${url}/api/tokens/create`, {
        method: 'POST',
        headers: { ...asOwner, 'content-type': 'application/json', 'x-parley': '1' },
        body: JSON.stringify({ name: `${scope}-${crypto.randomUUID().slice(0, 8)}`, scopes: [scope] }),
      });
      const { id, secret } = (await made.json()) as { readonly id: string; readonly secret: string };
      return { id, headers: { authorization: `Bearer ${secret}` } };
    };
    return { folder, mediaDir, answerWith, sendBytes, get, create, signIn };
  }

  it('serves an image for the page, and any other file only as a download, whatever it contains', async () => {
    const { sendBytes, get } = await aHost();
    const common = {
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-store',
    };
    for (const [bytes, mimeType, type, disposition] of [
      [png, 'image/png', 'image/png', 'inline'],
      [svg, 'text/plain', 'application/octet-stream', 'attachment'],
      [svg, 'image/svg+xml', 'application/octet-stream', 'attachment'],
      [page, 'text/html', 'application/octet-stream', 'attachment'],
      ['%PDF-1.7', 'application/pdf', 'application/octet-stream', 'attachment'],
    ] as const) {
      const { id } = await sendBytes(bytes, { mimeType });
      const answer = await get(id);
      expect(answer.status).toBe(200);
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        ...common,
        'content-type': type,
        'content-disposition': `${disposition}; filename="a.bin"; filename*=UTF-8''a.bin`,
      });
      expect(Buffer.from(await answer.arrayBuffer())).toEqual(Buffer.from(bytes));
    }
  });

  it('serves each file of an album under the id of its own message', async () => {
    const { mediaDir, get } = await aHost();
    const files = ['one', 'two'].map((name) => ({ path: newOutgoingName(), mimeType: 'text/plain', name }));
    for (const { path, name } of files) await writeFile(join(mediaDir, path), name);
    const { laneKey, begin, answer } = aConversation(open());
    const run = await begin('send them');
    const content = { kind: 'media', files } as const;
    await answer(run, '', { parts: [{ route: routeFor(run), content, purpose: 'reply' }] });
    const [, ...shown] = await open().read(readTimeline, { laneKey, limit: 100 });
    const bytes = await Promise.all(shown.map(async ({ messageId }) => (await get(messageId)).text()));
    expect(bytes).toEqual(['one', 'two']);
    expect((await get(`${shown[0]?.messageId}#2`)).status).toBe(404);
  });

  it('serves files of 0 bytes and of 20 MB whole', async () => {
    const { sendBytes, get } = await aHost();
    for (const size of [0, 20_000_000]) {
      const answer = await get((await sendBytes(Buffer.alloc(size, 7))).id);
      expect(answer.headers.get('content-length')).toBe(String(size));
      expect((await answer.arrayBuffer()).byteLength).toBe(size);
    }
  });

  it.each([
    [
      '"; filename=evil.html',
      `filename="__ filename_evil.html"; filename*=UTF-8''%22%3B%20filename%3Devil.html`,
    ],
    ['a\r\nSet-Cookie: x=1', `filename="a Set-Cookie_ x_1"; filename*=UTF-8''a%20Set-Cookie%3A%20x%3D1`],
    ['../../etc/passwd', `filename=".._.._etc_passwd"; filename*=UTF-8''.._.._etc_passwd`],
    ['report\u202egnp.exe', `filename="reportgnp.exe"; filename*=UTF-8''reportgnp.exe`],
    ["Bücher (1)'.pdf", `filename="B_cher (1)_.pdf"; filename*=UTF-8''B%C3%BCcher%20%281%29%27.pdf`],
    ['\ud800', `filename="_"; filename*=UTF-8''%EF%BF%BD`],
    ['\u001b', `filename="file"; filename*=UTF-8''file`],
  ])('names a file %j safely', async (name, expected) => {
    const { sendBytes, get } = await aHost();
    const answer = await get((await sendBytes('x', { name })).id);
    expect(answer.headers.get('content-disposition')).toBe(`attachment; ${expected}`);
    expect(answer.headers.get('set-cookie')).toBeNull();
  });

  it('serves a file to the owner and to tokens that may read its conversation, and to nobody else', async () => {
    const { sendBytes, get, create, signIn } = await aHost();
    const { id } = await sendBytes('secret');
    const [reader, chatter, operator] = [await create('read'), await create('chat'), await create('operate')];
    expect((await get(id, { cookie: await signIn() })).status).toBe(200);
    expect((await get(id, reader.headers)).status).toBe(200);
    expect((await get(id, operator.headers)).status).toBe(403);
    expect((await get(id, {})).status).toBe(401);
    const refused = await get(id, chatter.headers);
    const unknown = await get('no-such-message', chatter.headers);
    expect([refused.status, unknown.status]).toEqual([404, 404]);
    expect(await refused.text()).toBe(await unknown.text());
    const own = formatSessionKey({
      ...{ kind: 'direct', agent: agentId('main'), account: accountId(programAccount) },
      ...{ channel: channelId(chatter.id), peer: peerId('x') },
    });
    await sql(`update outbox set "laneKey" = '${own}' where key = '${id}'`);
    expect((await get(id, chatter.headers)).status).toBe(200);
  });

  it('serves nothing but the file that the part names, and says that it is gone', async () => {
    const { folder, mediaDir, answerWith, sendBytes, get } = await aHost();
    await writeFile(join(folder, 'secret.txt'), 'secret');
    const linked = newOutgoingName();
    await symlink(join(folder, 'secret.txt'), join(mediaDir, linked));
    const dir = newOutgoingName();
    await mkdir(join(mediaDir, dir));
    for (const path of ['../secret.txt', join(folder, 'secret.txt'), linked, dir, newOutgoingName()]) {
      const answer = await get(await answerWith(path));
      expect(answer.status).toBe(404);
      expect(await answer.text()).toContain('This file is no longer kept.');
    }
    const { id, path } = await sendBytes('x');
    expect((await get(path)).status).toBe(404);
    expect((await get(`${id}/../x`)).status).toBe(404);
    expect((await get(id)).status).toBe(200);
    await rm(join(mediaDir, path));
    const gone = await get(id);
    expect(gone.status).toBe(404);
  });
});
