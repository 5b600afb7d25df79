import { beforeEach, expect, it } from 'vitest';
import type { Store } from '../../../src/store/base/command.ts';
import { setLaneMode } from '../../../src/store/lanes/session.ts';
import { addProcess } from '../../../src/store/processes/process-records.ts';
import { type LanePage, readLiveLanes } from '../../../src/store/reads/read-live-lanes.ts';
import { readLaneStatus } from '../../../src/store/reads/read-sessions.ts';
import { readItemText } from '../../../src/store/reads/read-waiting-items.ts';
import { aConversation } from '../a-conversation.ts';
import { holder } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { aFamilyWorker } from '../family.ts';

const asked = { limit: 100, leaseMs: 30_000 };

describeEachDatabase('the lanes of the page', (open, beside) => {
  // Each test sees only its own lanes.
  beforeEach(() => beside.sql('delete from lanes; delete from inbox'));

  it('lists lanes with state, run, holder and waiting items, busy lanes first', async () => {
    const store = open();
    await store.write(addProcess, { id: holder, folder: '/data', role: 'worker', ended: [] });
    const [idle, later, due, lost, busy] = await Promise.all([
      aRest(store),
      aConversation(store, { settings: { debounceMs: 60_000 } }),
      aConversation(store, { settings: { debounceMs: 0, quietMs: 0 } }),
      aConversation(store),
      aConversation(store, { settings: { mode: 'followup', cap: 100 } }),
    ]);
    await later.say('later');
    await due.say('due');
    const run = await busy.begin('first', {});
    await lost.say('lost');
    await lost.claimRun(1);
    for (let count = 1; count <= 22; count++) await busy.say(`${count} \u0007 waits`, { sender: 'bob' });

    const { lanes, next } = await store.read(readLiveLanes, asked);
    expect(next).toBeUndefined();
    expect(lanes.at(-1)?.key).toBe(idle.laneKey);
    const of = ({ laneKey }: { laneKey: string }) => lanes.find(({ key }) => key === laneKey);
    expect([idle, later, due, lost, busy].map((each) => of(each)?.state)).toEqual([
      ...['idle', 'armed', 'due', 'unheld', 'active'],
    ]);
    expect(of(busy)).toMatchObject({
      ...{ class: 'main', agentId: 'main', mode: 'followup', waitingCount: 22 },
      holder: { id: holder, role: 'worker' },
      run: { id: run.runId, kind: 'turn', isStopping: false },
    });
    expect(of(busy)?.holder?.leaseAgeMs).toBeLessThan(30_000);
    expect(of(busy)?.waiting).toHaveLength(20);
    const [first] = of(busy)?.waiting ?? [];
    expect(first).toMatchObject({ sender: 'test:bob', senderName: 'bob', state: 'waiting', files: 0 });
    expect(first?.excerpt).toMatch(/^1 /);
    expect(of(lost)).not.toHaveProperty('holder');
    expect(of(idle)).not.toHaveProperty('run');

    expect(await store.read(readItemText, { id: first?.id ?? '' })).toBe('1 \u0007 waits');
    await busy.answer(run, 'done');
    await busy.claimRun();
    expect(await store.read(readItemText, { id: first?.id ?? '' })).toBeUndefined();
  });

  it('pages lanes without a gap or a repeat, to the end', async () => {
    const store = open();
    const rest = [];
    for (let count = 0; count < 3; count++) rest.push(await aRest(store));
    const working = [aConversation(store), aConversation(store)];
    for (const each of working) await each.begin();
    const waiting = aConversation(store);
    await waiting.say();

    for (const limit of [1, 2, 4, 6]) {
      const pages: LanePage[] = [];
      do {
        pages.push(await store.read(readLiveLanes, { ...asked, limit, after: pages.at(-1)?.next }));
      } while (pages.at(-1)?.next !== undefined);
      expect(pages).toHaveLength(6 / limit === 1.5 ? 2 : 6 / limit);
      const keys = pages.flatMap(({ lanes }) => lanes.map(({ key }) => key));
      const atWork = [...working, waiting].map(({ laneKey }) => laneKey);
      expect(new Set(keys.slice(0, 3))).toEqual(new Set(atWork));
      expect(new Set(keys)).toEqual(new Set([...atWork, ...rest.map(({ laneKey }) => laneKey)]));
      expect(keys).toHaveLength(6);
    }
  });

  it("lists a sub-agent's lane while it works, and refuses to change its mode", async () => {
    const store = open();
    const family = aFamilyWorker(store);
    const { run, lane } = await family.begin();
    const child = await family.spawnOne(run);
    const keys = async () => (await store.read(readLiveLanes, asked)).lanes.map(({ key }) => key);
    expect(await keys()).toContain(child.laneKey);
    expect(await store.write(setLaneMode, { laneKey: child.laneKey, mode: 'collect' })).toBe(false);
    await family.answer(await family.claimRun(child.laneKey), 'found');
    expect(await keys()).toEqual([lane.key]);
  });

  it("sets a lane's mode as /queue does and keeps its other settings", async () => {
    const store = open();
    const { laneKey, say } = aConversation(store, { settings: { mode: 'steer', cap: 7 } });
    expect(await store.write(setLaneMode, { laneKey, mode: 'collect' })).toBe(false);
    await say();
    expect(await store.write(setLaneMode, { laneKey, mode: 'collect' })).toBe(true);
    const status = () => store.read(readLaneStatus, { laneKey });
    expect(await status()).toMatchObject({ mode: 'collect', cap: 7, overrides: { mode: 'collect' } });
    // The next message brings the configured mode, which is different.
    await say();
    expect(await status()).toMatchObject({ mode: 'collect', overrides: { mode: 'collect' } });
  });
});

/** Returns a conversation with nothing left to do. */
async function aRest(store: Store) {
  const conversation = aConversation(store);
  await conversation.answer(await conversation.begin(), 'done');
  return conversation;
}
