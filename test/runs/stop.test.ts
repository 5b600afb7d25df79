import { expect, it } from 'vitest';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { aStore } from '../support/own-store.ts';
import { playNext } from './run-builders.ts';

it('says nothing of an answer that was stopped, by another process, before it was on record', async () => {
  const { store } = await aStore();
  const { laneKey, say, command, claimPart, conversationKey } = aConversation(store);
  await say('go');
  const model = scriptedModel(async function* () {
    await command({ kind: 'stop', isPrivileged: true, isAll: false });
    yield* says('too late');
  });
  const { exit } = await playNext(store, laneKey, { model });
  expect(exit).toEqual({ kind: 'idle' });
  const { inbox, openRuns } = await readLane(store, laneKey);
  expect({ openRuns, outcomes: inbox.map(({ outcome }) => outcome) }).toEqual({
    openRuns: 0,
    outcomes: ['cancelled'],
  });
  // The command's own answer, and nothing after it.
  expect((await claimPart()).part.content).toMatchObject({ text: { text: 'Stopped.' } });
  expect(await countOpen()).toBe(1);

  function countOpen() {
    return store.read(
      {
        query: 'countOpen',
        run: async (tx, key: string) =>
          (await tx.db.selectFrom('outbox').select('key').where('conversationKey', '=', key).execute())
            .length,
      },
      conversationKey,
    );
  }
});
