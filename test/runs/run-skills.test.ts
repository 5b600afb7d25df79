import { expect, it } from 'vitest';
import type { SkillSnapshot } from '#contracts/skill.ts';
import { aTool } from '../agent/support/builders.ts';
import { callsTools, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { playNext } from './run-builders.ts';

const weather: SkillSnapshot = {
  id: 'one',
  skills: [{ name: 'weather', description: 'Tells it.', folder: '/x', digest: 'sha256-1' }],
};
const changed: SkillSnapshot = { id: 'two', skills: [] };

describeEachDatabase('the skills of a run', (open) => {
  it('gives a resumed run the skills that it began with, and the next run the current ones', async () => {
    const { laneKey, say } = aConversation(open());
    const seen: (SkillSnapshot | undefined)[] = [];
    const over = (current: SkillSnapshot) => ({
      skillsFor: async () => current,
      systemFor: async ({ skills }: { readonly skills?: SkillSnapshot }) => {
        seen.push(skills);
        return [];
      },
    });
    const shutdown = new AbortController();
    const stopping = aTool('stop', {
      execute: async () => {
        shutdown.abort();
        return { text: 'done' };
      },
    });
    await say('go');
    const first = await playNext(open(), laneKey, {
      model: scriptedModel(callsTools({ id: '1', name: 'stop' }), says('never')),
      tools: [stopping],
      signal: shutdown.signal,
      over: over(weather),
    });
    expect(first.exit).toEqual({ kind: 'handed-over' });
    const second = await playNext(open(), laneKey, {
      model: scriptedModel(says('well')),
      over: over(changed),
    });
    expect(second.run).toMatchObject({ runId: first.run.runId, isResumed: true });
    await say('again');
    await playNext(open(), laneKey, { model: scriptedModel(says('well')), over: over(changed) });
    expect(seen).toEqual([weather, weather, undefined]);
  });
});
