/**
 * Chat commands and button presses lock rows in one order: all approvals and all links, accounts, lanes, questions,
 * conversations. Each test holds one row and checks that the rows after it are free.
 */
import { beforeEach, expect, it } from 'vitest';
import { messageId } from '../../src/contracts/ids.ts';
import { readOpenApprovals } from '../../src/store/approvals/approval.ts';
import type { Store } from '../../src/store/base/command.ts';
import { acceptBatch } from '../../src/store/intake/accept-batch.ts';
import type { AcceptInput } from '../../src/store/intake/proposal.ts';
import { aLane, demoOnly, framing } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { holdNewLane, holdRow, isAnyoneWaiting, isRowHeld } from '../store/hold-row.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { type Account, anAccount, anEnvelope, createIntakeFixture, refOf } from './support/intake-fixture.ts';
import { spawnOne } from './support/spawn-one.ts';

type Row = readonly [table: string, key: string];

const accountOf = ({ channel, bot = 'bot' }: Account): Row => ['accounts', `${channel}/${bot}`];
const conversationOf = ({ channel, peer, bot = 'bot' }: Account): Row => [
  'conversations',
  `${channel}/${bot}/${peer}`,
];

describeEachDatabase('the locks of a command', (open, beside) => {
  const itOnPostgres = it.runIf(beside.dialect === 'postgres');
  beforeEach(async () => {
    for (const table of ['people', 'pairings', 'approvals', 'pairingTries', 'linkGuesses'])
      await beside.sql(`delete from "${table}"`);
    await beside.sql(`insert into "pairingTries" values ('approve', '[]')`);
  });

  /** Acts while a row is held, and expects another row to be free when the action waits. */
  const expectFree = async (
    row: Row,
    { act, release }: { readonly act: () => Promise<unknown>; readonly release: () => Promise<void> },
  ) => {
    const acting = act();
    await expect.poll(() => isAnyoneWaiting(beside)).toBe(true);
    expect(await isRowHeld(beside, ...row)).toBe(false);
    await release();
    await acting;
  };
  const hold = (row: Row) => holdRow(beside, ...row);
  const makeUnreachable = (who: Account) =>
    beside.sql(`update conversations set "unreachableAt" = 1 where key = '${conversationOf(who)[1]}'`);

  /** Makes a stranger's request to an account whose row sorts before that of the account to which the owner writes. */
  const aDoor = async () => {
    const [owner, stranger] = [anAccount('zeta'), anAccount('alpha')];
    const town = createIntakeFixture(open(), {
      config: { owners: [refOf(owner)] },
      access: { dmPolicy: 'pairing' },
    });
    const laneKey = town.laneOf(await town.send(owner, 'hello'));
    await town.send(stranger, 'let me in');
    const [, code = ''] = /code: (\w{8})/.exec((await town.said(owner)).at(-1) ?? '') ?? [];
    const [question] = await open().read(readOpenApprovals, { limit: 1, isDue: false });
    await town.send(owner, `/pair approve ${code}`);
    const id = question?.id ?? '';
    const press = { kind: 'button', messageId: messageId('1'), data: `a:${id}:y` } as const;
    const lane = aLane('stranger', {
      key: laneKey.replace(/zeta/g, 'alpha').replaceAll(owner.peer, stranger.peer),
    });
    return { town, owner, stranger, lane, laneKey, code, id, press };
  };
  type Door = Awaited<ReturnType<typeof aDoor>>;
  type Answer = readonly [name: string, act: (door: Door) => Promise<unknown>];

  const approve: Answer = [
    '/pair approve',
    ({ town, owner, code }) => town.send(owner, `/pair approve ${code}`),
  ];
  const confirm: Answer = [
    '/pair confirm',
    ({ town, owner, code }) => town.send(owner, `/pair confirm ${code}`),
  ];
  const revoke: Answer = [
    '/pair revoke',
    ({ town, owner, stranger }) => town.send(owner, `/pair revoke ${refOf(stranger)}`),
  ];
  const yes: Answer = ['/approve', ({ town, owner, id }) => town.send(owner, `/approve ${id}`)];
  const no: Answer = ['/deny', ({ town, owner, id }) => town.send(owner, `/deny ${id}`)];
  const press: Answer = ['a press', ({ town, owner, press: event }) => town.send(owner, event)];

  itOnPostgres.each([approve, confirm, revoke, yes, no, press])(
    'locks accounts in key order: %s',
    async (_, act) => {
      const door = await aDoor();
      const release = await hold(accountOf(door.stranger));
      await expectFree(accountOf(door.owner), { act: () => act(door), release });
    },
  );

  itOnPostgres.each([approve, confirm])(
    'counts an attempt before it locks an account: %s',
    async (_, act) => {
      const door = await aDoor();
      const release = await hold(['pairingTries', 'approve']);
      await expectFree(accountOf(door.owner), { act: () => act(door), release });
    },
  );

  itOnPostgres.each([confirm, revoke, yes, no])(
    "locks the command's lane before the conversation of the question: %s",
    async (_, act) => {
      const door = await aDoor();
      const release = await hold(['lanes', door.laneKey]);
      await expectFree(conversationOf(door.owner), { act: () => act(door), release });
    },
  );

  itOnPostgres.each([confirm, yes, press])(
    'locks the lane of the kept message before a question or a conversation: %s',
    async (_, act) => {
      const door = await aDoor();
      await makeUnreachable(door.owner);
      const release = await holdNewLane(beside, door.lane);
      await expectFree(conversationOf(door.owner), { act: () => act(door), release });
      expect((await readLane(open(), door.lane.key)).inbox).toHaveLength(1);
    },
  );

  itOnPostgres("locks a revoked person's lanes before a conversation", async () => {
    const door = await aDoor();
    await confirm[1](door);
    await makeUnreachable(door.owner);
    const release = await hold(['lanes', door.lane.key]);
    await expectFree(conversationOf(door.owner), { act: () => revoke[1](door), release });
    expect((await readLane(open(), door.lane.key)).inbox).toMatchObject([{ outcome: 'refused' }]);
  });

  itOnPostgres(
    'locks the link attempts before an account, and the other lane before a conversation',
    async () => {
      const [asker, joiner] = [anAccount('alpha'), anAccount('zeta')];
      const town = createIntakeFixture(open());
      const laneKey = town.laneOf(await town.send(asker, 'hello'));
      const code = await town.ask(asker);
      const act = () => town.send(joiner, `/link ${code}`);
      await expectFree(accountOf(joiner), { act, release: await hold(['linkGuesses', '*']) });
      await makeUnreachable(joiner);
      await expectFree(conversationOf(joiner), { act, release: await hold(['lanes', laneKey]) });
    },
  );

  /** Returns a sender whose run has a sub-agent, in a conversation that counts as unreachable. */
  const aFamily = async () => {
    const ann = anAccount('alpha');
    const town = createIntakeFixture(open());
    const laneKey = town.laneOf(await town.send(ann, 'go'));
    const run = await town.worker.claimRun(laneKey);
    const { id, childLane } = await spawnOne(open(), run);
    await town.send(ann, '/whoami');
    await makeUnreachable(ann);
    return { ann, town, laneKey, run, id, childLane };
  };

  itOnPostgres.each(['/stop', '/subagents stop', '/subagents steer'])(
    'locks the lanes of sub-agents before a conversation: %s',
    async (words) => {
      const { ann, town, id, childLane } = await aFamily();
      const text = { '/stop': '/stop', '/subagents steer': `/subagents steer ${id} faster` }[words];
      const release = await hold(['lanes', childLane]);
      const act = () => town.send(ann, text ?? `${words} ${id}`);
      await expectFree(conversationOf(ann), { act, release });
    },
  );

  itOnPostgres('leaves a lane command to the next claim once a conversation is locked', async () => {
    const { ann, town, laneKey, run, childLane } = await aFamily();
    await town.worker.answer(run, 'asked a sub-agent');
    await makeUnreachable(ann);
    const terms = {
      holder: 'boot-1',
      leaseMs: 10_000,
      framing,
      maxAttempts: 3,
      models: demoOnly,
      class: 'main',
    };
    const working = createIntakeFixture(open(), {
      reserve: () => ({ terms: { ...terms, newRunIds: ['unused'] }, begin: () => undefined }),
    });
    const release = await hold(['lanes', childLane]);
    expect(await working.send(ann, '/new')).toMatchObject({ kind: 'accepted' });
    await release();
    expect((await town.worker.claim(laneKey)).kind).toBe('again');
  });

  it('stores a command or a press in a transaction of its own', async () => {
    const stored: string[][] = [];
    const write: Store['write'] = (step, input) => {
      if (step.name === acceptBatch.name)
        stored.push((input as AcceptInput).proposals.map(({ decision }) => decision.kind));
      return open().write(step, input);
    };
    const town = createIntakeFixture({ ...open(), write });
    const ann = anAccount('alpha');
    const press = { kind: 'button', messageId: messageId('1'), data: 'a:nothing:y' } as const;
    const events = ['one', 'two', '/whoami', press, 'three'].map((event) => anEnvelope(ann, event));
    expect(await town.accept(ann, events)).toHaveLength(events.length);
    expect(stored).toEqual([['accept', 'accept'], ['command'], ['press'], ['accept']]);
  });
});
