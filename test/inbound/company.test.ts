/** Messages that people send as one: a comment and the forward or album after it, an album and the text after it. */

import { expect, it } from 'vitest';
import type { InboundMessage } from '#contracts/envelope.ts';
import { messageId } from '#contracts/ids.ts';
import { type QueueMode, queueModes } from '#contracts/queue-settings.ts';
import { textOf } from '../../src/contracts/message.ts';
import type { Store } from '../../src/store/base/command.ts';
import { takeSteers } from '../../src/store/lanes/steer.ts';
import { framing } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { patienceMs } from '../support/patience.ts';
import { anAccount, createIntakeFixture } from './support/intake-fixture.ts';

const saying = (text: string, over: Partial<InboundMessage> = {}): InboundMessage => ({
  kind: 'message',
  messageId: messageId(crypto.randomUUID()),
  text,
  provenance: 'typed',
  attachments: [],
  mentionsBot: false,
  repliesToBot: false,
  ...over,
});
const forward = (text: string) => saying(text, { provenance: 'forwarded', forwardedFrom: 'News' });
const albumPart = (text: string) => saying(text, { album: 'a1' });

function aTown(store: Store, mode: QueueMode) {
  const settings = { mode, debounceMs: 0, quietMs: 0, cap: 20, drop: 'summarize' } as const;
  const queue = { dm: settings, group: settings, channels: {}, conversations: {} };
  return createIntakeFixture(store, { config: { queue } });
}

describeEachDatabase('a comment and its forward', (open) => {
  const told = async (laneKey: string) => (await readLane(open(), laneKey)).told.map(({ text }) => text);

  it.each(queueModes)('runs a comment and its forward together in mode %s', async (mode) => {
    const town = aTown(open(), mode);
    const ann = anAccount('alpha');
    const laneKey = town.laneOf(await town.send(ann, saying('What do you think?')));
    await town.send(ann, forward('Cheese prices doubled'));
    await town.send(ann, forward('/stop'));
    const claim = async () => (await town.worker.claim(laneKey)).kind;
    await expect.poll(claim, { timeout: patienceMs }).toBe('run');
    const [comment, ...forwards] = await told(laneKey);
    expect(comment).toBe('What do you think?');
    expect(forwards).toHaveLength(2);
    expect(forwards[0]).toMatch(/^<<<untrusted \w+ forwarded from News>>>\nCheese prices doubled\n/);
  });

  it.each(queueModes)(
    'steers the forward into the run that has read its comment in mode %s',
    async (mode) => {
      const town = aTown(open(), mode);
      const ann = anAccount('alpha');
      const laneKey = town.laneOf(await town.send(ann, saying('What do you think?')));
      const run = await town.worker.claimRun(laneKey);
      await town.send(ann, forward('Cheese prices doubled'));
      const boundary = await open().write(takeSteers, { ...run, framing, delivery: 'all' });
      expect(boundary.cancelReason).toBeUndefined();
      expect(boundary.steers.map(({ parts }) => textOf(parts)).join()).toContain('Cheese prices doubled');
    },
  );

  it("applies one decision of the group's mention gate to a comment and its forward", async () => {
    const town = aTown(open(), 'collect');
    const ann = anAccount('alpha');
    const inGroup = { group: `${ann.peer}-g` };
    const bob = { ...anAccount('alpha') };
    await town.send(ann, saying('bot, what is this?', { mentionsBot: true }), inGroup);
    expect(await town.send(ann, forward('News'), inGroup)).toMatchObject({ kind: 'accepted' });
    expect(await town.send(bob, forward('Other news'), inGroup)).toMatchObject({ kind: 'ignored' });
  });

  it('delays no message that nothing follows', async () => {
    const town = aTown(open(), 'steer');
    const ann = anAccount('alpha');
    const laneKey = town.laneOf(await town.send(ann, saying('hello')));
    expect((await town.worker.claim(laneKey)).kind).toBe('run');
    const alone = town.laneOf(await town.send(anAccount('alpha'), forward('only this')));
    expect((await town.worker.claim(alone)).kind).toBe('run');
  });

  it('carries out a command in the comment', async () => {
    const town = aTown(open(), 'followup');
    const ann = anAccount('alpha');
    expect(await town.send(ann, saying('/whoami'))).toMatchObject({ kind: 'command' });
    expect(await town.send(ann, forward('/new'))).toMatchObject({ kind: 'accepted' });
  });

  it('runs a forward separately if it comes later than an app would send it', async () => {
    const town = createIntakeFixture(open(), {
      config: {
        queue: {
          dm: { mode: 'followup', debounceMs: 0, quietMs: 0, cap: 20, drop: 'summarize' },
          group: { mode: 'collect', debounceMs: 0, quietMs: 0, cap: 20, drop: 'summarize' },
          channels: {},
          conversations: {},
        },
        joinMs: 0,
      },
    });
    const ann = anAccount('alpha');
    const laneKey = town.laneOf(await town.send(ann, saying('one')));
    await town.send(ann, forward('two'));
    await town.worker.claimRun(laneKey);
    expect(await told(laneKey)).toEqual(['one']);
  });
});

describeEachDatabase('an album with a text', (open) => {
  it.each([
    ['the text after it', [albumPart('first'), albumPart('second'), saying('compare them')]],
    ['the text before it', [saying('compare these'), albumPart('first'), albumPart('second')]],
  ])('runs an album together with %s', async (_, parts) => {
    const town = aTown(open(), 'followup');
    const ann = anAccount('alpha');
    let laneKey = '';
    for (const part of parts) laneKey = town.laneOf(await town.send(ann, part));
    const claim = async () => (await town.worker.claim(laneKey)).kind;
    await expect.poll(claim, { timeout: patienceMs }).toBe('run');
    const { told } = await readLane(open(), laneKey);
    expect(told.map(({ text }) => text)).toEqual(parts.map(({ text }) => text));
  });
});
