import { expect, it } from 'vitest';
import { anAccount, createIntakeFixture, refOf } from '../inbound/support/intake-fixture.ts';
import { aStore } from '../support/own-store.ts';
import { runParley } from './run-parley.ts';

it('lists linked people and unlinks those who linked in chat, with a notice', async () => {
  const { store, dataDir } = await aStore();
  const link = (...args: string[]) => runParley(['link', ...args], { PARLEY_DATA_DIR: dataDir });
  const town = createIntakeFixture(store);
  const [asker, joiner, third] = [anAccount('alpha'), anAccount('beta'), anAccount('gamma')];
  await town.link(asker, joiner);
  await town.link(asker, third);
  const shared = town.laneOf(await town.send(asker, 'hello'));

  const configured = [
    'I treat these accounts as one person:',
    ...['web:owner', 'terminal:owner'].map((ref) => `${ref} (by the configuration)`),
  ];
  const { stdout } = await link('list');
  expect(stdout.split('\n').slice(0, 3).sort()).toEqual(configured.sort());
  for (const account of [asker, joiner, third]) expect(stdout).toContain(`\n${refOf(account)}\n`);
  const people = async () =>
    (JSON.parse((await link('list', '--json')).stdout) as { accounts: { ref: string; source: string }[] }[])
      .filter(({ accounts }) => accounts.some(({ source }) => source === 'chat'))
      .map(({ accounts }) => accounts.map(({ ref }) => ref).sort());

  // The other accounts continue its conversation without it, and it must no longer read there what they write.
  expect(await link('remove', refOf(asker))).toMatchObject({
    ...{ code: 0, stdout: `${refOf(asker)} is no longer linked.\n` },
  });
  expect((await town.said(asker)).at(-1)).toBe(
    'My owner unlinked this account. It has its own conversation again.',
  );
  expect(await people()).toEqual([[joiner, third].map(refOf).sort()]);
  expect(town.laneOf(await town.send(asker, 'alone'))).not.toBe(shared);
  expect(town.laneOf(await town.send(third, 'still here'))).toBe(shared);
  const removed = await link('remove', refOf(third), '--json');
  expect(JSON.parse(removed.stdout)).toEqual({ ref: refOf(third) });

  const refused = await Promise.all([refOf(joiner), 'web:owner'].map((ref) => link('remove', ref)));
  expect(refused).toMatchObject([
    {
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/isn't linked\. See: \.\/bin\/parley\.mjs link list$/m),
    },
    {
      code: 1,
      stderr: expect.stringMatching(/^web:owner is linked by the configuration: change identityLinks/),
    },
  ]);
});
