import { expect, it } from 'vitest';
import { aConversation } from '../store/a-conversation.ts';
import { aStore } from '../support/own-store.ts';
import { runParley } from './run-parley.ts';

it('says that Parley has never run on this data folder', async () => {
  const { code, stderr } = await runParley(['outbox', 'list'], { PARLEY_DATA_DIR: '/nowhere' });
  expect(stderr).toMatch(/^There is no database in \/nowhere: .*PARLEY_DATA_DIR.*\n$/);
  expect(code).toBe(1);
});

it('resends or drops a message whose delivery is unknown', async () => {
  const { store, dataDir } = await aStore();
  const outbox = (...args: string[]) => runParley(['outbox', ...args], { PARLEY_DATA_DIR: dataDir });
  const { begin, answer, deliver } = aConversation(store);
  await answer(await begin(), 'hello');
  const { part } = await deliver({ kind: 'unknown', reason: 'cut' });
  expect(await outbox('retry', part.key)).toMatchObject({
    ...{ code: 0, stdout: `${part.key} will be sent again.\n` },
  });
  expect(JSON.parse((await outbox('drop', part.key, '--json')).stdout)).toEqual({ key: part.key });
  expect(await outbox('drop', 'nobody:1')).toMatchObject({
    ...{ code: 1, stderr: "nobody:1 isn't in the outbox. See: ./bin/parley.mjs outbox list\n" },
  });
});
