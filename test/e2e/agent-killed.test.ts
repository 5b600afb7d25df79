/** A program repeats a call because Parley was killed before it answered: it has happened once. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, test } from 'vitest';
import { aFolder } from '../support/own-folder.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { type ParleyProcess, startParley } from './parley-process.ts';

describeRow('a call of a program while Parley is killed', (atEnd) => {
  let dataDir: string;
  let token: string;
  let parley: ParleyProcess;

  beforeAll(async () => {
    dataDir = aFolder(atEnd);
    parley = await startParley({ dataDir, env: {} });
    atEnd(() => parley.kill());
    token = (await readFile(join(dataDir, 'token'), 'utf8')).trim();
  });

  const post = async (path: string, input: object) => {
    const headers = { authorization: `Bearer ${token}`, 'x-parley': '1', 'content-type': 'application/json' };
    const answer = await fetch(`${parley.url}/api/${path}`, {
      ...{ method: 'POST', headers, body: JSON.stringify(input) },
    });
    return (await answer.json()) as { readonly runId: string; readonly session: string };
  };
  const items = () => readStore(dataDir, 'select id, reservedRunId from inbox order by seq');

  test('gets the same run for the same key, with one copy of its files', async ({ expect }) => {
    const { session } = await post('agent', { message: 'hello', key: 'first' });
    await untilAtRest(dataDir, 0);
    const files = [{ name: 'list.txt', data: Buffer.from('milk').toString('base64') }];
    const calls: readonly (readonly [string, object])[] = [
      ['agent', { message: 'look', key: 'a', files, timeoutMs: 60_000, prompt: 'Be brief.' }],
      ['agent/steer', { session, message: 'left', key: 'b' }],
      ['agent/summarize', { session, key: 'c' }],
    ];
    for (const [path, input] of calls) {
      const before = items().length;
      await parley.killAt('item-enqueued:1');
      await expect(post(path, input), path).rejects.toThrow();
      await parley.ended;
      parley = await startParley({ dataDir, env: {} });
      const again = await post(path, input);
      expect(await post(path, input), path).toEqual(again);
      expect(items().slice(before), path).toMatchObject([{ reservedRunId: again.runId }]);
      await untilAtRest(dataDir, 0);
    }
    expect(await readdir(join(dataDir, 'media'))).toHaveLength(1);
    expect(findBreaches(dataDir)).toEqual([]);
  }, 120_000);
});
