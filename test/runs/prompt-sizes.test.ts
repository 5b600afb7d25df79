import { expect, it } from 'vitest';
import type { ModelEvent, SystemBlock } from '../../src/contracts/model.ts';
import { readSessions } from '../../src/store/reads/read-sessions.ts';
import { aTool } from '../agent/support/builders.ts';
import { completes, type Play, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { openOwnStore } from '../support/own-store.ts';
import { playNext } from './run-builders.ts';

const store = openOwnStore();

const system: readonly SystemBlock[] = [
  { text: 'You are Parley.', isStable: true },
  { text: 'Look before you write.'.repeat(40), isStable: true, isAboutTools: true },
];
const withoutTools: ModelEvent = { ...completes('end_turn'), withoutTools: true } as ModelEvent;

it('counts tools and their instructions only while they are sent to the model', async () => {
  const { laneKey, say } = aConversation(store());
  const sizesOf = async (play: Play) => {
    await say('hello');
    const over = { systemFor: async () => system };
    const { run } = await playNext(store(), laneKey, {
      model: scriptedModel(play),
      tools: [aTool('look')],
      over,
    });
    const [session] = await store().read(readSessions, { ids: [run.sessionId], limit: 1 });
    return [session?.instructionTokens ?? 0, session?.toolTokens ?? 0] as const;
  };
  const [all, tools] = await sizesOf(says('Hi.'));
  expect(tools).toBeGreaterThan(0);
  const [some, none] = await sizesOf([...says('Hi.').slice(0, -1), withoutTools]);
  expect(some).toBeLessThan(all);
  expect(none).toBe(0);
  expect(await sizesOf(says('Hi.'))).toEqual([all, tools]);
});

it('sends each turn of a session as a continuation of that session', async () => {
  const { laneKey, say } = aConversation(store());
  for (const text of ['hello', 'and again']) {
    await say(text);
    const model = scriptedModel(says('Hi.'));
    const { run } = await playNext(store(), laneKey, { model });
    expect(model.requests.map(({ conversation }) => conversation)).toEqual([run.sessionId]);
  }
});
