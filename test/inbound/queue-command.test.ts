/** `/queue` through intake into the store: settings at every level, and what people do to waiting messages. */

import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { dropPolicies, type QueueSettings, queueModes } from '../../src/contracts/queue-settings.ts';
import type { Store } from '../../src/store/base/command.ts';
import { readLaneStatus } from '../../src/store/reads/read-sessions.ts';
import { readWaitingItems } from '../../src/store/reads/read-waiting-items.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { isLong } from '../support/long-run.ts';
import {
  type Account,
  anAccount,
  createIntakeFixture,
  type IntakeFixtureSettings,
  refOf,
  type Scene,
} from './support/intake-fixture.ts';

const everywhere: QueueSettings = { mode: 'followup', debounceMs: 0, quietMs: 0, cap: 20, drop: 'summarize' };
const levels = ({ of = {}, channel = {}, conversation = {} }: Levels, { channel: name, peer }: Account) => ({
  dm: { ...everywhere, ...of },
  group: everywhere,
  channels: { [name]: channel },
  conversations: { [`${name}:${peer}`]: conversation },
});

type Names = Partial<QueueSettings>;
type Levels = { readonly of?: Names; readonly channel?: Names; readonly conversation?: Names };

describeEachDatabase('the queue settings of a lane', (open) => {
  it('takes each setting from the first level that names it, and says which', async () => {
    const ann = anAccount('alpha');
    const queue = levels({ channel: { cap: 7, quietMs: 5 }, conversation: { cap: 9 } }, ann);
    const town = createIntakeFixture(open(), { config: { queue } });
    const ask = async (text: string) => {
      await town.send(ann, text);
      return (await town.said(ann)).at(-1);
    };
    expect(await ask('/queue')).toBe(
      'Queue: followup debounce:0ms quiet:5ms cap:9 drop:summarize\n' +
        'Configured for this conversation: cap. Configured for alpha: quiet. Default: mode, debounce, drop.\n' +
        'Nothing is waiting.',
    );
    expect(await ask('/queue drop:new')).toBe('Queue: followup debounce:0ms quiet:5ms cap:9 drop:new');
    expect(await ask('/queue collect quiet:2s')).toBe(
      'Queue: collect debounce:0ms quiet:2000ms cap:9 drop:new',
    );
    await town.send(ann, 'hello');
    expect(await ask('/queue')).toBe(
      'Queue: collect debounce:0ms quiet:2000ms cap:9 drop:new\n' +
        'Set here with /queue: mode, quiet, drop. Configured for this conversation: cap. Default: debounce.\n' +
        '1 waiting: see /queue list.',
    );
    expect(await ask('/queue reset')).toBe(
      'Back to the configured settings. Queue: followup debounce:0ms quiet:5ms cap:9 drop:summarize',
    );
  });

  it('follows the configuration except for what /queue has set', async () => {
    const ann = anAccount('alpha');
    const before = createIntakeFixture(open(), {
      config: { queue: levels({ conversation: { cap: 7, quietMs: 5 } }, ann) },
    });
    await before.send(ann, '/queue collect');
    await before.send(ann, '/queue quiet:2s');
    const after = createIntakeFixture(open(), {
      config: { queue: levels({ conversation: { cap: 9, quietMs: 6 } }, ann) },
    });
    const laneKey = after.laneOf(await after.send(ann, 'hello'));
    const status = await open().read(readLaneStatus, { laneKey });
    expect(status).toMatchObject({ mode: 'collect', quietMs: 2000, cap: 9, drop: 'summarize' });
    expect(status?.overrides).toEqual({ mode: 'collect', quietMs: 2000 });
    await after.worker.answer(await after.worker.claimRun(laneKey), 'ok');
  });

  it('follows the configuration from the next message on in every sequence of changes', async () => {
    const names: fc.Arbitrary<Names> = fc.record(
      {
        mode: fc.constantFrom(...queueModes),
        debounceMs: fc.constantFrom(0, 1000),
        quietMs: fc.constantFrom(0, 2000),
        cap: fc.integer({ min: 15, max: 40 }),
        drop: fc.constantFrom(...dropPolicies),
      },
      { requiredKeys: [] },
    );
    const configured = fc.record({ of: names, channel: names, conversation: names });
    const step = fc.oneof(
      fc.record({ kind: fc.constant('configure' as const), levels: configured }),
      fc.record({ kind: fc.constant('set' as const), names }),
      fc.record({ kind: fc.constant('reset' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(configured, fc.array(step, { maxLength: 6 }), async (first, steps) => {
        const ann = anAccount('alpha');
        let now: Levels = first;
        let set: Names = {};
        for (const one of steps) {
          if (one.kind === 'configure') now = one.levels;
          const { send, laneOf } = createIntakeFixture(open(), { config: { queue: levels(now, ann) } });
          if (one.kind === 'reset') set = {};
          if (one.kind === 'reset') await send(ann, '/queue reset');
          if (one.kind === 'set' && Object.keys(one.names).length > 0) {
            set = { ...set, ...one.names };
            await send(ann, `/queue ${wordsOf(one.names)}`);
          }
          const laneKey = laneOf(await send(ann, 'hello'));
          const status = await open().read(readLaneStatus, { laneKey });
          const order = [set, now.conversation, now.channel, now.of, everywhere];
          const first = (name: keyof QueueSettings) => order.find((level) => level && name in level)?.[name];
          for (const name of ['mode', 'debounceMs', 'quietMs', 'cap', 'drop'] as const)
            expect([name, status?.[name]]).toEqual([name, first(name)]);
        }
      }),
      { numRuns: isLong ? 2_000 : 25 },
    );
  }, 600_000);
});

describeEachDatabase('/queue in a direct conversation', (open) => {
  it('lists waiting messages, and cancels, promotes and edits them by number at once', async () => {
    const { town, ann, ask, laneKey } = await aConversation(open());
    for (const text of ['buy milk', 'buy bread', 'call mum']) await town.send(ann, text);
    const list = (await ask('/queue list')).split('\n');
    const [heading, first, second, third, hint] = list;
    expect([heading, hint, list.length]).toEqual([
      'Waiting (3), next first:',
      'Change one with /queue cancel, promote or edit plus its number.',
      5,
    ]);
    const [milk, bread, mum] = [first, second, third].map((line) => Number(/^#(\d+) /.exec(line ?? '')?.[1]));
    expect(first).toBe(`#${milk} Person ${ann.peer}, 0 s: “buy milk”`);
    expect(await ask(`/queue promote ${mum}`)).toBe(`#${mum} comes next: “call mum”`);
    expect(await ask(`/queue edit #${mum} Call Mum, please`)).toBe(`#${mum} now reads: “Call Mum, please”`);
    expect(await ask(`/queue cancel ${milk}`)).toBe(`Cancelled #${milk}: “buy milk”`);
    expect(await ask(`/queue cancel ${milk}`)).toBe(`#${milk} is no longer waiting: cancelled.`);
    expect(await ask('/queue cancel 99999')).toBe(
      'There is no #99999 here. Send /queue list to see what’s waiting.',
    );
    expect(await ask('/queue edit 99999 x')).toBe(
      'There is no #99999 here. Send /queue list to see what’s waiting.',
    );
    expect(await numbersOf(open(), laneKey)).toEqual([mum, bread]);
    expect(await ask('/queue list')).toContain(`“Call Mum, please” (moved up)`);
    const run = await town.worker.claimRun(laneKey);
    expect(await ask(`/queue cancel ${mum}`)).toBe(`I’m already working on #${mum}. Send /stop to stop me.`);
    expect(await ask(`/queue promote ${mum}`)).toBe(`I’m already working on #${mum}.`);
    expect(await ask(`/queue edit ${mum} Call Dad`)).toBe(
      `I’m already working on #${mum}, so I’ll take that as a correction.`,
    );
    expect(await ask('/queue list')).toContain('“Call Dad” (a correction)');
    expect(await ask('/queue cancel all')).toBe('Cancelled everything waiting (2).');
    expect(await ask('/queue cancel all')).toBe('Nothing is waiting.');
    expect(await ask('/queue list')).toBe('Nothing is waiting.');
    await town.worker.answer(run, 'ok');
    expect(await outcomes(open(), laneKey)).toEqual([
      `cancelled by ${refOf(ann)}`,
      `cancelled by ${refOf(ann)}`,
      'answered null',
      `cancelled by ${refOf(ann)}`,
    ]);
  });

  it('lets a waiting /new be cancelled, and nothing be promoted past it', async () => {
    const { town, ann, ask, laneKey } = await aConversation(open());
    await town.send(ann, 'before');
    await town.send(ann, '/new');
    await town.send(ann, 'after');
    const [, command = 0, after = 0] = await numbersOf(open(), laneKey);
    expect(await ask(`/queue promote ${after}`)).toContain('comes after a waiting /new');
    expect(await ask(`/queue edit ${command} /reset`)).toContain('is a command: you can cancel it');
    await ask(`/queue cancel ${command}`);
    expect(await ask(`/queue promote ${after}`)).toBe(`#${after} comes next: “after”`);
    const run = await town.worker.claimRun(laneKey);
    await town.worker.answer(run, 'ok');
    const next = await town.worker.claimRun(laneKey);
    expect(next.sessionId).toBe(run.sessionId);
    await town.worker.answer(next, 'ok');
  });

  it("shows and changes only one's own messages in a shared lane, except for an owner", async () => {
    const boss = anAccount('alpha');
    const { town, ann, laneKey } = await aConversation(open(), { dmScope: 'main', owners: [refOf(boss)] });
    const bob = anAccount('beta');
    await town.send(ann, 'a secret');
    await town.send(bob, 'mine');
    const [secret = 0, mine = 0] = await numbersOf(open(), laneKey);
    const asks = async (who: Account, text: string) => {
      await town.send(who, text);
      return (await town.said(who)).at(-1) ?? '';
    };
    const seen = await asks(bob, '/queue list');
    expect(seen).not.toContain('secret');
    expect(seen).toContain('“mine”');
    expect(await asks(boss, '/queue list')).toContain('“a secret”');
    for (const verb of ['cancel', 'promote'])
      expect(await asks(bob, `/queue ${verb} ${secret}`)).toMatch(/^Only .* may do that\.$/);
    expect(await town.send(bob, `/queue edit ${secret} hacked`)).toEqual({
      kind: 'refused',
      reason: 'not-permitted',
    });
    expect(await asks(bob, '/queue cancel all')).toBe('Cancelled everything of yours that was waiting (1).');
    expect(await asks(bob, '/queue cancel all')).toBe('Nothing of yours is waiting.');
    expect(await asks(boss, `/queue cancel ${secret}`)).toBe(`Cancelled #${secret}: “a secret”`);
    expect((await town.said(ann)).at(-1)).toBe(
      'Your message was cancelled, so I won’t answer it: “a secret”',
    );
    expect(await outcomes(open(), laneKey)).toEqual([
      `cancelled by ${refOf(boss)}`,
      `cancelled by ${refOf(bob)}`,
    ]);
    expect(mine).toBeGreaterThan(secret);
  });
});

describeEachDatabase('/queue in a group', (open) => {
  it('lets members of a group list all messages and change their own, admins and owners any', async () => {
    const { town, ann, bob, ask, laneKey } = await aGroup(open());
    const [a = 0, b = 0] = await numbersOf(open(), laneKey);
    expect(await ask(bob, '/queue list')).toContain('“from ann”');
    expect(await ask(bob, `/queue cancel ${a}`)).toMatch(/^Only the sender, an admin or my owner may/);
    expect(await ask(bob, `/queue promote ${b}`)).toBe('Only an admin or my owner may do that.');
    expect(await ask(bob, `/queue edit ${b} better`)).toBe(`#${b} now reads: “better”`);
    expect(await ask(ann, `/queue promote ${b}`, { isAdmin: true })).toBe(`#${b} comes next: “better”`);
    // Other people's messages keep their author's authority, so even an admin can't edit them.
    expect(await ask(ann, `/queue edit ${b} mine`, { isAdmin: true })).toBe(
      'Only the sender or my owner may do that.',
    );
    // Commands that a member may not use do nothing except say who may.
    for (const text of ['/queue', '/queue collect', '/queue reset'])
      expect(await town.send(bob, text, { group: laneKey.split(':').at(-1) ?? '' })).toEqual({
        kind: 'refused',
        reason: 'not-permitted',
      });
    const run = await town.worker.claimRun(laneKey);
    const { told } = await readLane(open(), laneKey);
    // Edited, it keeps its sender's name, authority and time.
    expect(told.at(-1)?.text).toMatch(new RegExp(`^\\[Person ${bob.peer} \\(guest\\) · .*\\] better$`));
    await town.worker.answer(run, 'ok');
    expect(await ask(ann, '/queue cancel all', { isAdmin: true })).toBe('Cancelled everything waiting (1).');
  });
});

const wordOf = { mode: '', debounceMs: 'debounce', quietMs: 'quiet', cap: 'cap', drop: 'drop' } as const;

function wordsOf(names: Names): string {
  const words = Object.entries(names).map(([name, value]) => {
    const word = wordOf[name as keyof QueueSettings];
    if (word === '') return value;
    return `${word}:${value}${name.endsWith('Ms') ? 'ms' : ''}`;
  });
  return words.join(' ');
}

async function aConversation(store: Store, config: IntakeFixtureSettings['config'] = {}) {
  const ann = anAccount('alpha');
  const town = createIntakeFixture(store, { config: { queue: levels({}, ann), ...config } });
  const ask = async (text: string) => {
    await town.send(ann, text);
    return (await town.said(ann)).at(-1) ?? '';
  };
  return { town, ann, ask, laneKey: await laneKeyOf(town, ann) };
}

async function aGroup(store: Store) {
  const [ann, bob] = [anAccount('alpha'), anAccount('alpha')];
  const group = `g-${crypto.randomUUID()}`;
  const queue: IntakeFixtureSettings['config'] = { queue: levels({}, ann) };
  const town = createIntakeFixture(store, {
    config: queue,
    access: { groupPolicy: 'open' } as Partial<Config['access']>,
  });
  const called = { group, mentionsBot: true };
  const laneKey = town.laneOf(await town.send(ann, 'from ann', called));
  await town.send(bob, 'from bob', called);
  const ask = async (who: Account, text: string, scene: Partial<Scene> = {}) => {
    await town.send(who, text, { group, ...scene });
    return (await town.said({ ...who, peer: group })).at(-1) ?? '';
  };
  return { town, ann, bob, ask, laneKey };
}

/** Returns the lane of the account's direct conversation, with nothing waiting in it. */
async function laneKeyOf(town: ReturnType<typeof createIntakeFixture>, from: Account): Promise<string> {
  const laneKey = town.laneOf(await town.send(from, 'which lane?'));
  for (;;) {
    const claim = await town.worker.claim(laneKey);
    if (claim.kind !== 'run') break;
    await town.worker.answer(claim.run, 'this one');
  }
  return laneKey;
}

async function numbersOf(store: Store, laneKey: string): Promise<readonly number[]> {
  return (await store.read(readWaitingItems, { laneKey })).map(({ number }) => number);
}

/** Reads the lane's outcomes, except that of the message that created it. */
async function outcomes(store: Store, laneKey: string): Promise<readonly string[]> {
  const [, ...inbox] = (await readLane(store, laneKey)).inbox;
  return inbox.map(({ outcome, reason }) => `${outcome} ${reason}`);
}
