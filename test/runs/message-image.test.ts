import { expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { Clock } from '../../src/contracts/clock.ts';
import type { ModelEvent } from '../../src/contracts/model.ts';
import type { Store } from '../../src/store/base/command.ts';
import { saveImage } from '../../src/store/lanes/commit-turn.ts';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { playNext } from './run-builders.ts';

/** Counts how often a message is stored while it streams, on a clock that the model advances. */
async function imagesOf(
  open: Store,
  stream: (pass: (ms: number) => void) => AsyncIterable<ModelEvent>,
): Promise<number> {
  let aheadMs = 0;
  let images = 0;
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  const store: Store = {
    ...open,
    writeAlong: (command, input) => {
      if (command.name === saveImage.name) images += 1;
      open.writeAlong(command, input);
    },
  };
  const { laneKey, say } = aConversation(open);
  await say('go');
  const model = scriptedModel(() => stream((ms) => (aheadMs += ms)));
  await playNext(open, laneKey, { model, over: { store, clock } });
  return images;
}

describeEachDatabase('a message that streams', (open) => {
  it('is stored by its own commit only when it is short, however long the model has thought', async () => {
    const images = imagesOf(open(), async function* (pass) {
      pass(5_000);
      yield* says('a short answer');
    });
    expect(await images).toBe(0);
  });

  it('is stored meanwhile when it takes longer than 250 ms', async () => {
    const images = imagesOf(open(), async function* (pass) {
      for (const event of says('a long answer')) {
        yield event;
        if (event.type === 'content_delta') pass(300);
      }
    });
    expect(await images).toBeGreaterThan(0);
  });
});
