import { expect, it } from 'vitest';
import { anAccount, createIntakeFixture, refOf } from '../inbound/support/intake-fixture.ts';
import { aStore } from '../support/own-store.ts';
import { runParley } from './run-parley.ts';

it('lists the agents that were chosen in chat, and takes one back', async () => {
  const { store, dataDir } = await aStore();
  const agents = (...args: string[]) => runParley(['agents', ...args], { PARLEY_DATA_DIR: dataDir });
  expect((await agents('bindings')).stdout).toBe('No agents were chosen in chat.\n');
  const town = createIntakeFixture(store);
  const ann = anAccount('alpha');
  await town.send(ann, '/agent main', { group: '-9', isAdmin: true });
  await town.send(ann, '/agent main', { group: '-9', thread: '5', isAdmin: true });
  const lines = (await agents('bindings')).stdout.trim().split('\n').sort();
  expect(lines).toEqual([
    expect.stringMatching(new RegExp(`^alpha/bot/-9  main  .*, by ${refOf(ann)}$`)),
    expect.stringMatching(/^alpha\/bot\/-9 5 {2}main {2}/),
  ]);
  expect((await agents('unbind', 'alpha/bot/-9', '5')).code).toBe(0);
  expect(JSON.parse((await agents('bindings', '--json')).stdout)).toMatchObject([
    { conversation: 'alpha/bot/-9', agent: 'main', setBy: refOf(ann) },
  ]);
  expect(await agents('unbind', 'alpha/bot/-9', '5')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^No agent was chosen for thread 5 of alpha\/bot\/-9\. See: /),
  });
});
