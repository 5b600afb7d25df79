import { describe, expect, it } from 'vitest';
import { enqueueItems } from '../../src/store/intake/enqueue-items.ts';
import type { InnerItem } from '../../src/store/items/enqueue-item.ts';
import type { TakenOrigin } from '../../src/store/lanes/take-rows.ts';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aRoute, unique } from '../store/builders.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { openOwnStore } from '../support/own-store.ts';
import { playNext, runSettings } from './run-builders.ts';

type Origin = TakenOrigin & Pick<InnerItem, 'source'>;

describe('words of silence in a run', () => {
  const store = openOwnStore();

  /** Plays a run that takes a person's message, unless it doesn't, and these items; returns the outcomes. */
  const outcomesOf = async (text: string, items: readonly Origin[], isAsked = true) => {
    const { conversation, lane, laneKey, say } = aConversation(store());
    await say('hello');
    if (!isAsked) await playNext(store(), laneKey, { model: scriptedModel(says('Hello.')) });
    for (const { source, sourceKey } of items) {
      const item: InnerItem = {
        id: unique('item'),
        source,
        sourceKey: unique(sourceKey ?? source),
        reach: 'always',
        target: aRoute(conversation),
        authority: 'owner',
        content: {
          text: 'It ended.',
          prompt: 'It ended.',
          sender: { id: '', name: '' },
          sentAt: 1,
          attachments: [],
        },
      };
      await store().write(enqueueItems, { items: [{ lane, item }] });
    }
    const settings = { ...runSettings, steerDelivery: 'all' } as const;
    await playNext(store(), laneKey, { model: scriptedModel(says(text)), over: { settings } });
    const { inbox } = await readLane(store(), laneKey);
    return inbox.map(({ outcome }) => outcome).slice(isAsked ? 0 : 1);
  };
  const announced = { source: 'child', sourceKey: 'child:key' } as const;

  it('sends nothing for ANNOUNCE_SKIP in a run that has taken an announcement', async () => {
    expect(await outcomesOf('ANNOUNCE_SKIP', [announced])).toEqual(['silent', 'silent']);
  });

  it('treats ANNOUNCE_SKIP as ordinary text in any other run', async () => {
    expect(await outcomesOf('ANNOUNCE_SKIP', [])).toEqual(['answered']);
    expect(await outcomesOf('ANNOUNCE_SKIP', [{ source: 'session', sourceKey: null }])).toEqual([
      'answered',
      'answered',
    ]);
  });

  it.each([
    ['ANNOUNCE_SKIP', { source: 'task', sourceKey: 'task:t::1' }],
    ['REPLY_SKIP', { source: 'session', sourceKey: 'session:s' }],
    ['HEARTBEAT_OK', { source: 'schedule', sourceKey: 'schedule:s:1' }],
  ] as const)('sends nothing for %s after what it answers', async (token, item) => {
    expect(await outcomesOf(token, [item], false)).toEqual(['silent']);
    expect(await outcomesOf(token, [item])).toEqual(['silent', 'silent']);
  });

  it('judges an answer by everything that its run took', async () => {
    const items = [announced, { source: 'session', sourceKey: 'session:s' }] as const;
    expect(await outcomesOf('ANNOUNCE_SKIP\nREPLY_SKIP', items)).toEqual(['silent', 'silent', 'silent']);
  });

  it('sends nothing for a short heartbeat, and the same words to a person', async () => {
    const item = { source: 'schedule', sourceKey: 'schedule:s:1' } as const;
    expect(await outcomesOf('All is well. HEARTBEAT_OK', [item], false)).toEqual(['silent']);
    expect(await outcomesOf('All is well. HEARTBEAT_OK', [item])).toEqual(['answered', 'answered']);
  });
});
