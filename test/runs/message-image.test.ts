import { expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { Clock } from '../../src/contracts/clock.ts';
import { textOf } from '../../src/contracts/message.ts';
import type { ModelEvent } from '../../src/contracts/model.ts';
import type { Store } from '../../src/store/base/command.ts';
import { enqueueItems } from '../../src/store/intake/enqueue-items.ts';
import { saveImage } from '../../src/store/lanes/commit-turn.ts';
import { readTranscriptPage } from '../../src/store/reads/read-transcript.ts';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { anItem } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { playNext, runSettings, someActiveRuns } from './run-builders.ts';

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

describeEachDatabase('a streamed message', (open) => {
  it('stores a short message by its own commit only, however long the model has thought', async () => {
    const images = imagesOf(open(), async function* (pass) {
      pass(5_000);
      yield* says('a short answer');
    });
    expect(await images).toBe(0);
  });

  it('stores a message while it is written if that takes longer than 250 ms', async () => {
    const images = imagesOf(open(), async function* (pass) {
      for (const event of says('a long answer')) {
        yield event;
        if (event.type === 'content_delta') pass(300);
      }
    });
    expect(await images).toBeGreaterThan(0);
  });

  it.each([
    ['any message', 'before-first-token', 'mode', ['user: go', 'user: and this', 'assistant: Both.']],
    [
      'a message with the reach “always”',
      'never',
      'always',
      ['user: go', 'user: and this', 'assistant: Both.'],
    ],
    [
      'no other message if turned off',
      'never',
      'mode',
      ['user: go', 'assistant: One.', 'user: and this', 'assistant: Both.'],
    ],
  ] as const)('gives up the call before its first word for %s', async (_, dm, reach, expected) => {
    let aheadMs = 0;
    const clock: Clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
    const { lane, laneKey } = aConversation(open());
    const put = (text: string, over = {}) =>
      open().write(enqueueItems, { items: [{ lane, item: anItem(text, over) }] });
    await put('go');
    const active = someActiveRuns(open(), 'boot-of-this-test');
    const thinks = async function* (_request: unknown, signal: AbortSignal): AsyncGenerator<ModelEvent> {
      yield { type: 'thinking_delta', thinking: 'hm' };
      aheadMs += 300;
      yield { type: 'thinking_delta', thinking: ', well' };
      await put('and this', { reach });
      active.arrived(laneKey);
      // Asked for once more only if the call isn't given up.
      yield { type: 'thinking_delta', thinking: '.' };
      if (!signal.aborted) yield* says('One.');
    };
    const model = scriptedModel(thinks, says('Both.'));
    const settings = { ...runSettings, steerRestart: { dm, group: dm } };
    const { run } = await playNext(open(), laneKey, { model, over: { clock, active, settings } });
    await active.close();
    const rows = await open().read(readTranscriptPage, { sessionId: run.sessionId, limit: 10 });
    expect(rows.map(({ role, parts }) => `${role}: ${textOf(parts)}`)).toEqual(expected);
  });
});
