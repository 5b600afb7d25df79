import { describe, expect, it } from 'vitest';
import { enqueueItems } from '../../src/store/intake/enqueue-items.ts';
import type { InnerItem } from '../../src/store/items/enqueue-item.ts';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aRoute, unique } from '../store/builders.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { openOwnStore } from '../support/own-store.ts';
import { playNext } from './run-builders.ts';

describe('ANNOUNCE_SKIP', () => {
  const store = openOwnStore();

  const outcomesWhen = async (isAnnounced: boolean) => {
    const { conversation, lane, laneKey, say } = aConversation(store());
    await say('hello');
    if (isAnnounced) {
      const item: InnerItem = {
        id: unique('item'),
        source: 'child',
        sourceKey: unique('child:key'),
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
    await playNext(store(), laneKey, { model: scriptedModel(says('ANNOUNCE_SKIP')) });
    const { inbox } = await readLane(store(), laneKey);
    return inbox.map(({ outcome }) => outcome);
  };

  it('sends nothing for ANNOUNCE_SKIP in a run that has taken an announcement', async () => {
    expect(await outcomesWhen(true)).toEqual(['silent', 'silent']);
  });

  it('treats ANNOUNCE_SKIP as ordinary text in any other run', async () => {
    expect(await outcomesWhen(false)).toEqual(['answered']);
  });
});
