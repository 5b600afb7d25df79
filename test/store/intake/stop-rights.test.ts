import { expect, it } from 'vitest';
import { takeSteers } from '../../../src/store/lanes/steer.ts';
import { saidIn } from '../../runs/said-in.ts';
import { aConversation } from '../a-conversation.ts';
import { aCommand, endWithout, framing } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { aFamilyWorker } from '../family.ts';
import { readLane } from '../lane-at-rest.ts';

describeEachDatabase('/stop in a group', (open) => {
  /** Ann's message is running, and one of Bob's waits. */
  const aBusyGroup = async () => {
    const { conversation, worker, say, claimRun } = aConversation(open());
    await say('work', { sender: 'ann' });
    const run = await claimRun(60_000);
    await say('and this', { sender: 'bob' });
    const stop = async (sender: string, over: { isPrivileged?: boolean; isAll?: boolean } = {}) => {
      const effect = { kind: 'stop', isPrivileged: false, isAll: false, ...over } as const;
      const { acceptances, effects } = await worker.accept(aCommand(conversation, effect, sender));
      const { inbox } = await readLane(open(), run.laneKey);
      return {
        became: acceptances[0]?.kind,
        stopsRun: effects.cancels.some(({ runId }) => runId === run.runId),
        isBobWaiting: inbox.some(({ state }) => state === 'waiting'),
      };
    };
    return Object.assign(stop, { said: () => open().read(saidIn, conversation) });
  };

  it("stops a group's run for the person who started it, and keeps what others have waiting", async () => {
    const stop = await aBusyGroup();
    expect(await stop('ann')).toEqual({ became: 'command', stopsRun: true, isBobWaiting: true });
  });

  it("cancels only the sender's own messages on /stop if another person started the run", async () => {
    const stop = await aBusyGroup();
    expect(await stop('bob')).toEqual({ became: 'command', stopsRun: false, isBobWaiting: false });
    expect(await stop('bob')).toEqual({ became: 'refused', stopsRun: false, isBobWaiting: false });
    const whoMay = 'Only an admin, or the person who started it, may';
    expect(await stop.said()).toEqual([
      `Cancelled what you had waiting. ${whoMay} stop what I’m working on.`,
      `${whoMay} do that.`,
    ]);
  });

  it('refuses /stop from somebody who has sent nothing', async () => {
    const stop = await aBusyGroup();
    expect(await stop('cid')).toEqual({ became: 'refused', stopsRun: false, isBobWaiting: true });
    expect(await stop('cid', { isAll: true })).toMatchObject({ became: 'refused', isBobWaiting: true });
  });

  it("lets an admin stop the run, and with “all” everybody's messages", async () => {
    const stop = await aBusyGroup();
    const isPrivileged = true;
    expect(await stop('admin', { isPrivileged })).toEqual({
      became: 'command',
      stopsRun: true,
      isBobWaiting: true,
    });
    expect(await stop('admin', { isPrivileged, isAll: true })).toMatchObject({ isBobWaiting: false });
  });

  it('lets the person who asked for a sub-agent stop the run that reports it, and its sub-agents', async () => {
    const worker = aFamilyWorker(open());
    const { run, lane, conversation } = await worker.begin();
    const child = await worker.spawnOne(run);
    await worker.answer(run);
    await worker.answer(await worker.claimRun(child.laneKey));
    const report = await worker.claimRun(lane.key);
    const next = await worker.spawnOne(report);
    const stop = async (sender: string) => {
      const effect = { kind: 'stop', isPrivileged: false, isAll: false } as const;
      const { acceptances, effects } = await worker.accept(aCommand(conversation, effect, sender, lane));
      const runs = effects.cancels.map(({ runId }) => runId);
      return { became: acceptances[0]?.kind, runs, children: effects.stoppedChildren };
    };
    expect(await stop('bob')).toEqual({ became: 'refused', runs: [], children: [] });
    expect(await stop('ann')).toEqual({ became: 'command', runs: [report.runId], children: [next.id] });
  });

  it.each(['waiting', 'retained'])(
    "cancels a sub-agent's unread announcement for the person who asked for it (%s)",
    async (kind) => {
      const worker = aFamilyWorker(open());
      const { run, lane, conversation } = await worker.begin('steer-backlog');
      const child = await worker.spawnOne(run);
      await worker.answer(await worker.claimRun(child.laneKey), 'found');
      if (kind === 'retained') await open().write(takeSteers, { ...run, framing, delivery: 'all' });
      const effect = { kind: 'stop', isPrivileged: false, isAll: false } as const;
      await worker.accept(aCommand(conversation, effect, 'bob', lane));
      await worker.accept(aCommand(conversation, effect, 'ann', lane));
      await endWithout(open(), run, 'stop');
      const { inbox } = await readLane(open(), lane.key);
      expect(inbox.map(({ outcome }) => outcome)).toEqual(['cancelled', 'cancelled']);
    },
  );
});
