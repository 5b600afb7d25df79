import { appendFile, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { snowflakeAt } from '../../../channels/discord/ids.ts';
import { InteractionTokens, tokenLifetimeMs } from '../../../channels/discord/interaction-tokens.ts';
import { aFolder } from '../../support/own-folder.ts';
import { silentLog } from '../../support/silent-log.ts';
import { hastyClock } from '../hasty-clock.ts';

async function aFile() {
  const folder = aFolder();
  const path = join(folder, 'interactions-1');
  let at = 1_800_000_000_000;
  const deps = { path, clock: { ...hastyClock, now: () => at }, log: silentLog };
  const aToken = (token: string) => ({ id: snowflakeAt(at), application: '1100', token });
  const pass = (ms: number) => {
    at += ms;
  };
  return { path, deps, aToken, pass };
}

it("reads another process's token until it expires, and then removes it from the file", async () => {
  const { path, deps, aToken, pass } = await aFile();
  const one = aToken('first');
  await (await InteractionTokens.open(deps)).keep(one);
  const tokens = await InteractionTokens.open(deps);
  expect(await tokens.recall(one.id)).toEqual(one);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  pass(tokenLifetimeMs);
  expect(await tokens.recall(one.id)).toBeUndefined();
  await InteractionTokens.open(deps);
  expect(await readFile(path, 'utf8')).toBe('');
});

it('removes expired tokens while it keeps new ones', async () => {
  const { path, deps, aToken, pass } = await aFile();
  const tokens = await InteractionTokens.open(deps);
  for (let count = 0; count < 999; count += 1) await tokens.keep(aToken(`${count}`));
  pass(tokenLifetimeMs);
  const last = ['one', 'two', 'three'].map(aToken);
  await Promise.all(last.map((one) => tokens.keep(one)));
  expect((await readFile(path, 'utf8')).split('\n')).toHaveLength(last.length + 1);
});

it('forgets a token that another process has dropped', async () => {
  const { deps, aToken } = await aFile();
  const one = aToken('first');
  const [gateway, worker] = [await InteractionTokens.open(deps), await InteractionTokens.open(deps)];
  await gateway.keep(one);
  expect(await worker.recall(one.id)).toEqual(one);
  await gateway.drop(one.id);
  expect(await worker.recall(one.id)).toBeUndefined();
});

it('keeps the tokens around a line that a crash cut off', async () => {
  const { path, deps, aToken, pass } = await aFile();
  const one = aToken('first');
  await (await InteractionTokens.open(deps)).keep(one);
  await appendFile(path, '12345');
  const tokens = await InteractionTokens.open(deps);
  pass(1);
  const two = aToken('second');
  await tokens.keep(two);
  expect([await tokens.recall(one.id), await tokens.recall(two.id)]).toEqual([one, two]);
});
