import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { storeSetup } from '../../../src/steps.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { readBoots } from '../../../src/store/processes/process-records.ts';
import { textsFor } from '../../../src/texts/chat-texts.ts';
import { makeDoor } from '../../e2e/cut-proxy.ts';
import { databaseServer, makeDatabase } from '../../e2e/own-database.ts';

const setup = storeSetup(textsFor('en'));

it('treats a PostgreSQL that refuses every connection as away, whatever the error', async () => {
  const fields = ['SFATAL', 'CXX000', 'Mnobody may enter', ''].map((field) => `${field}\0`).join('');
  const refusal = Buffer.alloc(5 + fields.length);
  refusal.write('E');
  refusal.writeInt32BE(4 + fields.length, 1);
  refusal.write(fields, 5);
  const server = createServer((socket) =>
    socket.once('data', () => socket.end(refusal)).on('error', () => undefined),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const opening = openPostgresStore({ url: `postgres://me@127.0.0.1:${port}/db`, poolSize: 1 }, setup);
  await expect(opening).rejects.toMatchObject({ code: 'store_unavailable', retry: { kind: 'later' } });
});

describe.skipIf(databaseServer === undefined)('a PostgreSQL whose connections have gone silent', () => {
  it('counts a silent PostgreSQL as away after a while, and opens new connections', async () => {
    const url = new URL((await makeDatabase(onTestFinished)).url);
    const behind = { host: url.hostname, port: Number(url.port || 5432) };
    const door = await makeDoor(behind, onTestFinished);
    url.host = `127.0.0.1:${door.port}`;
    const store = await openPostgresStore({ url: url.href, poolSize: 2, silenceMs: 2_000 }, setup);
    onTestFinished(store.close);
    const ask = () => store.read(readBoots, { folder: 'any' });
    await ask();
    door.silence();
    await expect(ask()).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await ask()).toEqual([]);
  });
});
