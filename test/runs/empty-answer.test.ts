import { describe, expect, it } from 'vitest';
import type { ModelEvent } from '../../src/contracts/model.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { aTool } from '../agent/support/builders.ts';
import { manualClock } from '../agent/support/manual-clock.ts';
import { callsTools, completes, type Play, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { until } from '../e2e/until.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aRoute } from '../store/builders.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { openOwnStore } from '../support/own-store.ts';
import { playNext, runSettings } from './run-builders.ts';
import { saidIn } from './said-in.ts';

describe('an unusual answer', () => {
  const store = openOwnStore();

  const outcomeOf = async (...plays: readonly Play[]) => {
    const { conversation, laneKey, say } = aConversation(store());
    await say('hello');
    const sent = { state: 'sent', route: aRoute(conversation), text: 'It is ten.', media: [] };
    const message = aTool('message', { execute: async () => ({ text: 'sent', metadata: { sent } }) });
    await playNext(store(), laneKey, { model: scriptedModel(...plays), tools: [message] });
    const { inbox } = await readLane(store(), laneKey);
    return inbox.map(({ outcome, reason }) => ({ outcome, reason }));
  };
  it('announces an answer that takes a minute once, and sends it when it comes', async () => {
    const { conversation, laneKey, say } = aConversation(store());
    await say('hello');
    const clock = manualClock();
    const said = () => store().read(saidIn, conversation);
    const { modelSlow } = textsFor('en');
    const slow = scriptedModel(async function* () {
      clock.advance(59_000);
      await new Promise(setImmediate);
      expect(await said()).toEqual([]);
      clock.advance(1_000);
      await until(async () => (await said()).length > 0, { what: 'a notice' });
      yield { type: 'content_delta', text: 'Here ' } as const;
      clock.advance(90_000);
      yield { type: 'content_delta', text: 'I am.' } as const;
      yield completes('end_turn');
    });
    const limits = { ...runSettings.limits, runTimeoutMs: 600_000, modelIdleMs: 120_000 };
    await playNext(store(), laneKey, { model: slow, over: { clock, settings: { ...runSettings, limits } } });
    expect(await said()).toEqual([modelSlow, 'Here I am.']);
  });

  const nothing: readonly ModelEvent[] = [completes('end_turn')];

  it('fails a message whose answer is empty twice', async () => {
    expect(await outcomeOf(nothing, nothing)).toEqual([{ outcome: 'failed', reason: 'empty answer' }]);
  });

  it('ends a message as silent if the agent chose silence', async () => {
    expect(await outcomeOf(says('NO_REPLY'))).toEqual([{ outcome: 'silent', reason: null }]);
  });

  it('ends a message as answered if the message tool sent the answer, and asks for nothing more', async () => {
    const call = callsTools({ id: '1', name: 'message' });
    expect(await outcomeOf(call, nothing, says('never asked'))).toEqual([
      { outcome: 'answered', reason: 'already-sent' },
    ]);
  });
});
