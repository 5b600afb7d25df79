/** `/tasks` from the platform's event to the store: who sees what, and who may direct which task. */
import { expect, it } from 'vitest';
import { settleTask } from '../../src/store/delegation/settle-task.ts';
import { readWaitingItems } from '../../src/store/reads/read-waiting-items.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { unique } from '../store/builders.ts';
import { aCoordinator } from '../store/delegation/a-coordinator.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { holdRow, isRowHeld } from '../store/hold-row.ts';
import { type Account, anAccount, createIntakeFixture, refOf, type Scene } from './support/intake-fixture.ts';

type Nodes = Parameters<ReturnType<typeof aCoordinator>['ask']>[1];

const chain: Nodes = [
  { id: 'a' },
  { id: 'b', agent: 'research', onFailure: 'skip' },
  { id: 'mine', agent: 'self', after: ['a'] },
];

describeEachDatabase('/tasks', (open, beside) => {
  /** Returns a conversation whose run has delegated a task, and people who write in it. */
  const aScene = async ({
    byOwner = false,
    nodes = chain,
    ...over
  }: Partial<Scene> & { byOwner?: boolean; nodes?: Nodes } = {}) => {
    const [ann, bob, boss] = [anAccount('alpha'), anAccount('alpha'), anAccount('alpha')];
    const town = createIntakeFixture(open(), { config: { owners: [refOf(boss)] } });
    const worker = aCoordinator(open());
    const where = { ...over, mentionsBot: true };
    const laneKey = town.laneOf(await town.send(byOwner ? boss : ann, 'go', where));
    const run = await worker.claimRun(laneKey);
    const asked = await worker.ask(run, nodes, { title: 'Compare suppliers' });
    if (asked.kind === 'refused') throw new Error(asked.reason);
    await worker.answer(run, 'I have asked others.');
    const to: Account = over.group === undefined ? ann : { ...ann, peer: over.group };
    const ask = async (from: Account, text: string, isAdmin = false) => {
      await town.send(from, text, { ...where, isAdmin });
      return (await town.said(to)).at(-1);
    };
    const { taskId } = asked;
    return { ...{ town, worker, laneKey, run, ann, bob, boss, ask, taskId }, short: taskId.slice(0, 5) };
  };

  it('lists the tasks of the conversation, and shows one with its subtasks', async () => {
    const { worker, ann, ask, taskId, short } = await aScene();
    expect(await ask(ann, '/tasks')).toBe(
      `${short} “Compare suppliers”: 0 of 3 subtasks ended\nUse /tasks show, stop, retry or steer plus the id.`,
    );
    await worker.finish(taskId, 'a');
    expect(await ask(ann, `/tasks show ${short}`)).toMatch(
      new RegExp(
        `^${short} “Compare suppliers”: 1 of 3 subtasks ended\n` +
          '· a \\(main\\): done, \\d+ s\n· b \\(research\\): at work, \\d+ s\n· mine \\(self\\): at work, \\d+ s\n' +
          'Agent main, tokens of the subtasks: [1-9]\\d*, cost \\$0\\.0000$',
      ),
    );
    expect(await ask(ann, '/tasks show zzzzz')).toBe('There’s no task “zzzzz” here. /tasks lists them.');
    const elsewhere = await aScene();
    expect(await elsewhere.ask(elsewhere.ann, `/tasks stop ${short}`)).toContain('There’s no task');
    expect(await elsewhere.ask(elsewhere.ann, '/tasks')).not.toContain(short);
  });

  it('shows of a large graph only what is at work or has failed, and counts the rest', async () => {
    const nodes = Array.from({ length: 40 }, (_, n) => ({ id: `n${n}`, after: n < 3 ? [] : [`n${n - 3}`] }));
    const { worker, ann, ask, taskId, short } = await aScene({ nodes });
    await worker.finish(taskId, 'n0');
    const said = (await ask(ann, `/tasks show ${short}`)) ?? '';
    expect(said.split('\n').map((line) => line.replace(/, \d+ s$/, ''))).toEqual([
      `${short} “Compare suppliers”: 1 of 40 subtasks ended`,
      ...['· n1 (main): at work', '· n2 (main): at work', '· n3 (main): at work'],
      'Not listed: waiting: 36, done: 1',
      expect.stringMatching(/^Agent main/),
    ]);
  });

  it('stops one subtask as its policy says, or the whole task, and tries a failed one again', async () => {
    const { worker, ann, ask, taskId, short } = await aScene();
    expect(await ask(ann, `/tasks stop ${short} b`)).toBe(
      `I’m stopping b of “Compare suppliers” (${short}).`,
    );
    expect(await worker.states(taskId)).toEqual({ a: 'dispatched', b: 'skipped', mine: 'pending' });
    expect(await ask(ann, `/tasks stop ${short} b`)).toContain('Nothing is at work on b');
    expect(await ask(ann, `/tasks stop ${short} c`)).toContain('has no subtask c');
    expect(await ask(ann, `/tasks retry ${short}`)).toContain('hasn’t failed');
    expect(await ask(ann, `/tasks stop ${short}`)).toBe(`I’m stopping “Compare suppliers” (${short}).`);
    await open().write(settleTask, { taskId });
    expect(await worker.show(taskId)).toMatchObject({ state: 'failed', error: `stopped by ${refOf(ann)}` });
    expect(await ask(ann, `/tasks stop ${short}`)).toContain('has already ended');
    expect(await ask(ann, '/tasks list')).toContain(`failed: stopped by ${refOf(ann)}`);
    expect(await ask(ann, `/tasks retry ${short}`)).toContain('I’m trying what has failed');
    expect(await worker.states(taskId)).toEqual({ a: 'dispatched', b: 'skipped', mine: 'pending' });
  });

  it('steers the sub-agent on a subtask, and says why it can’t', async () => {
    const { worker, ann, ask, taskId, short } = await aScene();
    expect(await ask(ann, `/tasks steer ${short} b Only\nthis year`)).toBe(
      `I’ve passed that on to b of “Compare suppliers” (${short}).`,
    );
    const { laneKey } = await worker.claimPeer(taskId, 'b');
    expect((await open().read(readWaitingItems, { laneKey })).map(({ excerpt }) => excerpt)).toEqual([
      'Only this year',
    ]);
    expect(await ask(ann, `/tasks steer ${short} mine faster`)).toContain('I do mine of');
    await worker.finish(taskId, 'a');
    expect(await ask(ann, `/tasks steer ${short} a faster`)).toContain('Nothing is at work on a');
    expect(await ask(ann, `/tasks steer ${short} x faster`)).toContain('has no subtask x');
  });

  it('lets only the starter, an admin or the owner direct a task in a group', async () => {
    const { worker, ann, bob, boss, ask, taskId, short } = await aScene({ group: unique('g') });
    for (const words of [`show ${short}`, `stop ${short}`, `stop ${short} a`, `retry ${short}`])
      expect(await ask(bob, `/tasks ${words}`)).toBe(
        'Only an admin, or the person who started it, may do that.',
      );
    expect(await ask(bob, `/tasks steer ${short} a slower`)).toContain('Only an admin');
    expect(await ask(bob, '/tasks list')).toContain('“Compare suppliers”');
    expect(await worker.states(taskId)).toMatchObject({ a: 'dispatched', b: 'dispatched' });
    expect(await ask(bob, `/tasks stop ${short} b`, true)).toContain('I’m stopping b');
    expect(await ask(boss, `/tasks show ${short}`)).toContain('Agent main');
    expect(await ask(ann, `/tasks stop ${short}`)).toContain('I’m stopping');
  });

  it('stops an owner’s task for an admin, but begins nothing with the owner’s rights', async () => {
    const { bob, boss, ask, short } = await aScene({ group: unique('g'), byOwner: true });
    expect(await ask(bob, `/tasks steer ${short} a go on`, true)).toContain('has more rights than you have');
    expect(await ask(bob, `/tasks stop ${short}`, true)).toContain('I’m stopping');
    expect(await ask(bob, `/tasks retry ${short}`, true)).toContain('has more rights than you have');
    expect(await ask(boss, `/tasks retry ${short}`)).toContain('I’m trying');
  });

  it('shows a linked person the tasks of their earlier lane', async () => {
    const { town, ann, ask, laneKey, short } = await aScene();
    const other = anAccount('beta');
    await town.link(other, ann);
    expect(town.laneOf(await town.send(ann, 'hello'))).not.toBe(laneKey);
    expect(await ask(ann, '/tasks')).toContain(short);
    expect(await ask(ann, `/tasks stop ${short}`)).toContain('I’m stopping');
    await town.send(other, '/tasks');
    expect((await town.said(other)).at(-1)).toBe('No tasks here.');
  });

  it('lists a nested task within the one that it is part of', async () => {
    const { worker, ann, ask, taskId, short } = await aScene();
    const nested = await worker.ask(await worker.claimPeer(taskId, 'b'), [{ id: 'deep' }], { title: 'Part' });
    if (nested.kind === 'refused') throw new Error(nested.reason);
    const inner = nested.taskId.slice(0, 5);
    expect(await ask(ann, '/tasks')).not.toContain(inner);
    expect(await ask(ann, `/tasks show ${short}`)).toMatch(
      new RegExp(`b \\(research\\): .*, task ${inner}\n`),
    );
    expect(await ask(ann, `/tasks stop ${inner} deep`)).toBe(`I’m stopping deep of “Part” (${inner}).`);
  });

  it('says that /stop has stopped a task, also while its agent does a part of it itself', async () => {
    const { worker, ann, ask, taskId } = await aScene({ nodes: [{ id: 'mine', agent: 'self' }] });
    expect(await ask(ann, '/stop')).toBe(textsFor('en').stopped);
    expect(await worker.show(taskId)).toMatchObject({ state: 'failed', error: 'stopped' });
    expect(await ask(ann, '/stop')).toBe(textsFor('en').nothingToStop);
  });

  it.runIf(beside.dialect === 'postgres')(
    'locks the conversation’s lane before that of a sub-agent whose task it stops',
    async () => {
      const { worker, ann, ask, taskId, laneKey } = await aScene();
      const peer = await worker.claimPeer(taskId, 'b');
      const nested = await worker.ask(peer, [{ id: 'deep' }]);
      if (nested.kind === 'refused') throw new Error(nested.reason);
      const release = await holdRow(beside, 'lanes', peer.laneKey);
      const asked = ask(ann, `/tasks stop ${nested.taskId}`);
      await expect.poll(() => isRowHeld(beside, 'lanes', laneKey)).toBe(true);
      await release();
      expect(await asked).toContain('I’m stopping');
    },
  );
});
