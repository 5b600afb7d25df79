import { describe, it } from 'vitest';
import { storeSetup } from '../../../src/steps.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { readBoots } from '../../../src/store/processes/process-records.ts';
import { noticesFor } from '../../../src/texts/notices.ts';
import { makeDoor } from '../../e2e/cut-proxy.ts';
import { databaseServer, makeDatabase } from '../../e2e/own-database.ts';

describe.skipIf(databaseServer === undefined)('a PostgreSQL whose connections have gone silent', () => {
  it('counts as away after a while, and is asked on new ones', async ({ onTestFinished, expect }) => {
    const url = new URL((await makeDatabase(onTestFinished)).url);
    const behind = { host: url.hostname, port: Number(url.port || 5432) };
    const door = await makeDoor(behind, onTestFinished);
    url.host = `127.0.0.1:${door.port}`;
    const options = { url: url.href, poolSize: 2, silenceMs: 2_000 };
    const store = await openPostgresStore(options, storeSetup(noticesFor('en')));
    onTestFinished(store.close);
    const ask = () => store.read(readBoots, { folder: 'any' });
    await ask();
    door.silence();
    await expect(ask()).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await ask()).toEqual([]);
  });
});
