import { once } from 'node:events';
import { readdir, utimes, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import { webChannel } from '../../../channels/web/ids.ts';
import { createUploads } from '../../../channels/web/uploads.ts';
import { aServer, send } from '../../server/a-server.ts';
import { aFolder } from '../../support/own-folder.ts';

async function uploadsIn() {
  const folder = aFolder();
  return { folder, ...createUploads({ folder, clock: systemClock }) };
}

it('reads an oversized upload to its end before it refuses it, and deletes a removed one', async () => {
  const { folder, take, drop } = await uploadsIn();
  const { server, port, token } = await aServer({ maxUploadBytes: 1_000 });
  onTestFinished(() => server.close());
  server.routesFor(webChannel).upload(take, drop);
  const headers = {
    ...{ authorization: `Bearer ${token}`, 'x-parley': '1' },
    'content-type': 'application/octet-stream',
  };
  const sendFile = async (bytes: number) => {
    const sending = request({ port, path: '/uploads/web', method: 'POST', headers });
    sending.end(Buffer.alloc(bytes));
    // This is more than the buffers of both sides can take.
    const [[answer]] = await Promise.all([once(sending, 'response'), once(sending, 'finish')]);
    const body = await text(answer);
    return { status: answer.statusCode, body };
  };
  expect(await sendFile(20_000_000)).toEqual({ status: 413, body: '{"error":{"code":"too_large"}}' });
  expect(await readdir(folder)).toEqual([]);
  const sent = await sendFile(1_000);
  expect(sent.status).toBe(200);
  const { id } = JSON.parse(sent.body);
  expect(await readdir(folder)).toEqual([id]);

  const type = 'application/json';
  const remove = (body: object, as: Record<string, string> = headers) =>
    send({
      port,
      path: '/uploads/web/drop',
      method: 'POST',
      headers: { ...as, 'content-type': type },
      body: JSON.stringify(body),
    });
  expect((await remove({ id }, { 'x-parley': '1' })).status).toBe(401);
  for (const wrong of [{}, { id: `../${id}` }, { id: crypto.randomUUID() }]) await remove(wrong);
  expect(await readdir(folder)).toEqual([id]);
  expect((await remove({ id })).status).toBe(204);
  expect(await readdir(folder)).toEqual([]);
});

it('makes room for uploads by deleting those whose message did not come within an hour', async () => {
  const { folder, take } = await uploadsIn();
  const now = Date.now() / 1000;
  const wait = async (name: string, seconds: number) => {
    await writeFile(join(folder, name), '');
    await utimes(join(folder, name), now, now - seconds);
  };
  for (let index = 0; index < 100; index += 1) await wait(`waits-${index}`, 3_700 + index);
  const file = async function* () {
    yield Buffer.from('new');
  };
  expect((await take({ bytes: file(), maxBytes: 10 })).status).toBe(200);
  const kept = await readdir(folder);
  expect([kept.length, kept.includes('waits-99'), kept.includes('waits-98')]).toEqual([100, false, true]);
  for (const name of kept) await wait(name, 60);
  expect((await take({ bytes: file(), maxBytes: 10 })).status).toBe(507);
  expect(await readdir(folder)).toHaveLength(100);
});
