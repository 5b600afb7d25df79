import { describe, expect, it } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import { Directory } from '../../../channels/discord/directory.ts';
import { History } from '../../../channels/discord/history.ts';
import { silentLog } from '../../support/silent-log.ts';
import { aScene, general } from './payloads.ts';

/** Returns a history whose store accepts nothing until it is released. */
function aHistory() {
  let [overflows, isStuck] = [0, true];
  const waiting: (() => void)[] = [];
  const { bot } = aScene().around;
  const unused = () => Promise.reject(new Error('test error: nothing is read here'));
  const history = new History({
    api: { messages: unused, channel: unused, answers: unused },
    directory: new Directory(bot),
    // For a live channel, none of this is used.
    contacts: undefined as never,
    clock: systemClock,
    log: silentLog,
    maxAgeMs: 1,
    anchors: new Map(),
    floor: () => '0',
    store: () => (isStuck ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve()),
    entriesOf: () => [],
    gap: () => undefined,
    onOverflow: () => {
      overflows += 1;
    },
  });
  history.begin(general);
  return {
    hand: (count: number) => {
      for (let n = 0; n < count; n += 1) history.hand(general, { entries: () => [] });
    },
    storesAll: async () => {
      isStuck = false;
      for (const resolve of waiting.splice(0)) resolve();
      await new Promise(setImmediate);
    },
    overflows: () => overflows,
  };
}

describe('live events that are not stored yet', () => {
  it('counts live events until they are stored', async () => {
    const history = aHistory();
    history.hand(10_000);
    await history.storesAll();
    history.hand(1);
    expect(history.overflows()).toBe(0);
  });

  it('leaves live events to the history if there are too many', () => {
    const history = aHistory();
    history.hand(10_001);
    expect(history.overflows()).toBe(1);
  });
});
