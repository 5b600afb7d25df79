import { expect, it } from 'vitest';
import { aBot, approve, readAccessRows } from '../store/access-builders.ts';
import { aStore } from '../support/own-store.ts';
import { runParley } from './run-parley.ts';

type Env = Readonly<Record<string, string>>;

/** Returns a data folder whose store stays open, as under a running gateway. */
async function aFolder(env: Env = {}) {
  const { store, dataDir } = await aStore();
  const bot = await aBot(store);
  return {
    bot,
    store,
    rows: () => store.read(readAccessRows, { account: bot.account }),
    parley: (...args: string[]) => runParley(args, { PARLEY_DATA_DIR: dataDir, ...env }),
  };
}

it('lists requests, approves the first as owner and the next as user, and revokes both', {
  timeout: 300_000,
}, async () => {
  const { bot, rows, parley } = await aFolder();
  await bot.asks('1', 'ABCD2345');
  await bot.asks('2', 'EFGH2345');
  expect((await parley('pair', 'list')).stdout).toMatch(
    /^asks: test:1 “Person 1” at test\/bot\S+, code ABCD2345, minutes left: 60$/m,
  );
  const hint = 'There’s no owner yet: the first person you approve becomes the owner and may do everything.';
  expect((await parley('pair', 'list')).stdout).toContain(hint);

  expect((await parley('pair', 'approve', 'abcd-2345')).stdout).toBe(
    'test:1 “Person 1” can write now, as the owner.\n',
  );
  expect((await parley('pair', 'approve', 'test:2')).stdout).toBe('test:2 “Person 2” can write now.\n');
  expect((await rows()).people).toEqual([
    { peerId: '1', role: 'owner' },
    { peerId: '2', role: 'user' },
  ]);
  expect((await parley('pair', 'list')).stdout).not.toContain(hint);
  const listed = JSON.parse((await parley('pair', 'list', '--json')).stdout) as object;
  expect(listed).toMatchObject({
    requests: [],
    people: expect.arrayContaining([
      expect.objectContaining({ ref: 'test:1', role: 'owner', approvedBy: 'console' }),
    ]),
  });

  expect((await parley('pair', 'revoke', 'test:1')).stdout).toBe('test:1 can no longer write.\n');
  expect((await rows()).people).toEqual([{ peerId: '2', role: 'user' }]);
  await bot.asks('3', 'JKLM2345');
  const asJson = async (...args: string[]): Promise<unknown> =>
    JSON.parse((await parley('pair', ...args, '--json')).stdout);
  expect(await asJson('approve', 'test:3')).toEqual({ ref: 'test:3', name: 'Person 3', role: 'owner' });
  expect(await asJson('revoke', 'test:3')).toEqual({ ref: 'test:3', isStillNamed: false });
});

it('makes nobody owner if the configuration names one, and says whose access remains', {
  timeout: 300_000,
}, async () => {
  const { bot, rows, parley } = await aFolder({ PARLEY_OWNERS: 'test:9' });
  await bot.asks('1', 'ABCD2345');
  await bot.asks('9', 'EFGH2345');
  await parley('pair', 'approve', 'ABCD2345');
  await parley('pair', 'approve', 'EFGH2345');
  expect((await rows()).people.map(({ role }) => role)).toEqual(['user', 'user']);
  expect((await parley('pair', 'revoke', 'test:9')).stdout).toMatch(
    /^test:9 can no longer write\. They still have access through the configuration/,
  );
});

it('explains invalid input and changes nothing', { timeout: 300_000 }, async () => {
  const { bot, store, rows, parley } = await aFolder();
  await bot.asks('1', 'ABCD2345');
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [['approve', 'ABCD2346'], /^There is no such pending request\./],
    [['approve', 'open'], /^“open” isn't a code/],
    [['revoke', 'test:7'], /^test:7 has no approval or pending request/],
    [['revoke', '@ann'], /^“@ann” isn't in the form channel:id/],
  ];
  for (const [args, reason] of wrong) {
    const { code, stderr } = await parley('pair', ...args);
    expect(stderr).toMatch(reason);
    expect(code).toBe(1);
  }
  for (let n = 0; n < 10; n++) await approve(store, 'ABCD2346');
  expect((await parley('pair', 'approve', 'ABCD2345')).stderr).toMatch(/^Too many codes\. Please try again/);
  expect(await rows()).toMatchObject({ people: [], pending: ['1'] });
});
