import { expect, it } from 'vitest';
import { pluginStoreLimits, type StoreOp } from '#contracts/plugin-store.ts';
import {
  commitPluginData,
  listPluginValues,
  pluginOps,
  readPluginValue,
} from '../../../src/store/rows/plugin-data.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('the values of plugins', (open) => {
  const commit = (plugin: string, ...ops: readonly StoreOp[]) =>
    open().write(commitPluginData, { plugin, ops: pluginOps(ops) });
  const get = (plugin: string, key: string) => open().read(readPluginValue, { plugin, key });

  it('changes all values of a commit or none, by their versions', async () => {
    const put = (key: string, value: unknown, version?: number): StoreOp => ({
      ...{ kind: 'put', key, value },
      ...(version !== undefined && { version }),
    });
    expect(await commit('dice', put('a', { n: 1 }, 0), put('b', 'x'))).toEqual({ kind: 'committed' });
    expect(await get('dice', 'a')).toEqual({ key: 'a', value: { n: 1 }, version: 1 });
    expect(await commit('dice', put('b', 'y'), put('a', 2, 0))).toEqual({ kind: 'conflict', key: 'a' });
    expect(await get('dice', 'b')).toMatchObject({ value: 'x', version: 1 });
    expect(await commit('dice', put('a', 2, 1), { kind: 'delete', key: 'b', version: 1 })).toEqual({
      kind: 'committed',
    });
    expect(await get('dice', 'a')).toMatchObject({ value: 2, version: 2 });
    expect(await get('dice', 'b')).toBeUndefined();
  });

  it('shows a plugin only its own values, by key', async () => {
    for (const key of ['p:2', 'p:1', 'q', 'p%']) await commit('own', { kind: 'put', key, value: key });
    await commit('other', { kind: 'put', key: 'p:3', value: 0 });
    const list = (input: { readonly after?: string; readonly limit?: number }) =>
      open().read(listPluginValues, { plugin: 'own', prefix: 'p:', after: '', limit: 10, ...input });
    expect((await list({})).map(({ key }) => key)).toEqual(['p:1', 'p:2']);
    expect((await list({ after: 'p:1', limit: 1 })).map(({ key }) => key)).toEqual(['p:2']);
  });

  it('counts each of 40 concurrent increments once', async () => {
    await commit('race', { kind: 'put', key: 'n', value: 0 });
    let conflicts = 0;
    const add = async (): Promise<void> => {
      const at = await get('race', 'n');
      const done = await commit('race', {
        kind: 'put',
        key: 'n',
        value: Number(at?.value) + 1,
        version: at?.version ?? 0,
      });
      if (done.kind === 'committed') return;
      conflicts += 1;
      return add();
    };
    await Promise.all(Array.from({ length: 40 }, add));
    expect(await get('race', 'n')).toMatchObject({ value: 40, version: 41 });
    expect(conflicts).toBeGreaterThan(0);
  });

  it('keeps what a plugin stores within bounds', async () => {
    const { values, valueBytes, ops } = pluginStoreLimits;
    const many = (from: number): readonly StoreOp[] =>
      Array.from({ length: ops }, (_, at) => ({ kind: 'put', key: `k${from + at}`, value: 0 }));
    for (let at = 0; at < values; at += ops) await commit('full', ...many(at));
    expect(await commit('full', { kind: 'put', key: 'more', value: 0 })).toMatchObject({ kind: 'refused' });
    expect(await commit('full', { kind: 'put', key: 'k1', value: 1 })).toEqual({ kind: 'committed' });
    expect(() => pluginOps([{ kind: 'put', key: 'a', value: 'x'.repeat(valueBytes) }])).toThrow('more than');
    expect(() =>
      pluginOps(Array.from({ length: ops + 1 }, (_, at) => ({ kind: 'delete', key: `${at}` }))),
    ).toThrow('at most');
    expect(() => pluginOps([{ kind: 'put', key: '', value: 1 }])).toThrow('1 to 200 characters');
    expect(() => pluginOps([{ kind: 'put', key: 'a', value: undefined }])).toThrow("isn't JSON");
  });
});
