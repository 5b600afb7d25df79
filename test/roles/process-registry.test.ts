import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { plainText } from '../../src/contracts/formatted-text.ts';
import { partKey } from '../../src/contracts/ids.ts';
import { openSendJournal } from '../../src/outbox/send-journal.ts';
import type { ProcessFiles } from '../../src/processes/process-files.ts';
import { bootIdOf, registerProcess } from '../../src/roles/infrastructure.ts';
import { claimDelivery } from '../../src/store/delivery/claim-delivery.ts';
import { recordPreview } from '../../src/store/delivery/preview.ts';
import { readPreview } from '../../src/store/lanes/recover-run.ts';
import { claimAccount } from '../../src/store/processes/accounts.ts';
import { readBoots } from '../../src/store/processes/process-records.ts';
import { policy } from '../store/a-conversation.ts';
import { aLane, aMessage, aRoute, aWorker, unique } from '../store/builders.ts';
import { aStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';

/** Returns a folder whose processes live and die as the test decides. */
async function aFolder() {
  const { store, dataDir } = await aStore();
  const living = new Set<string>();
  const removed: string[] = [];
  const journalOf = (name: string) => join(dataDir, `${name}.sends`);
  const enter = async (role: 'all' | 'worker') => {
    const name = unique('1');
    living.add(name);
    const holder = bootIdOf('folder', name);
    const journal = openSendJournal({ path: journalOf(name), holder, log: silentLog });
    onTestFinished(() => journal.close());
    const others = () => removedFrom([...everybody].filter((one) => one !== name));
    const removedFrom = (names: readonly string[]) => names.filter((one) => !removed.includes(one));
    everybody.add(name);
    const files: ProcessFiles = {
      name,
      addressPath: '',
      journalOf,
      isAlive: (one) => living.has(one),
      others,
      ended: () => others().filter((one) => !living.has(one)),
      remove: (names) => void removed.push(...names),
      release: () => undefined,
    };
    const processes = await registerProcess({ store, files, folderId: 'folder', log: silentLog }, role);
    return { name, holder, journal, processes, dies: () => living.delete(name) };
  };
  const everybody = new Set<string>();
  const boots = () => store.read(readBoots, { folder: 'folder' });
  return { store, enter, boots, removed };
}

it('reaps dead processes and leaves live ones alone', async () => {
  const { store, enter, boots, removed } = await aFolder();
  const [one, other, doomed] = [await enter('worker'), await enter('worker'), await enter('worker')];
  const claim = (account: string, { holder }: { readonly holder: string }) =>
    store.write(claimAccount, { account, holder, leaseMs: 60_000 });
  await claim('net/living', one);
  await claim('net/dying', doomed);
  expect(await other.processes.reapDead()).toBe(false);
  doomed.dies();
  expect(await other.processes.reapDead()).toBe(true);
  expect((await claim('net/dying', other)).kind).toBe('held');
  expect((await claim('net/living', other)).kind).toBe('busy');
  expect([...(await boots())].sort()).toEqual([one.holder, other.holder].sort());
  expect(removed).toEqual([doomed.name]);
  expect(await one.processes.reapDead()).toBe(false);
});

it('reaps nothing after a process has unregistered', async () => {
  const { enter, boots, removed } = await aFolder();
  const [one, other] = [await enter('worker'), await enter('worker')];
  await one.processes.unregister();
  expect(await boots()).toEqual([other.holder]);
  expect(removed).toEqual([one.name]);
  expect(await other.processes.reapDead()).toBe(false);
});

it.each([
  { begun: false, becomes: 'part', tells: 'sends what had not begun' },
  { begun: true, becomes: 'empty', tells: 'sends nothing that had begun' },
])('reads the journal of a dead process: the next one $tells', async ({ begun, becomes }) => {
  const { store, enter } = await aFolder();
  const [doomed, next] = [await enter('worker'), await enter('worker')];
  const conversation = unique('c');
  const worker = aWorker(store, doomed.holder);
  await worker.accept(aMessage({ conversation, text: 'hi' }));
  const run = await worker.claimRun(aLane(conversation).key);
  await worker.answer(run, 'hello', { sender: { ...policy, holder: doomed.holder } });
  if (begun) doomed.journal.begin(`${run.runId}:1`);
  doomed.dies();
  await next.processes.reapDead();
  const claim = { ...policy, holder: next.holder, conversationKey: `test/bot/${conversation}` };
  expect((await store.write(claimDelivery, claim)).kind).toBe(becomes);
});

it.each(['worker', 'all'] as const)(
  'adopts the shown previews of a dead process in a process of the role %s',
  async (role) => {
    const { store, enter } = await aFolder();
    const doomed = await enter('worker');
    const conversation = unique('c');
    const worker = aWorker(store, doomed.holder);
    await worker.accept(aMessage({ conversation, text: 'hi' }));
    const { runId, laneKey, epoch } = await worker.claimRun(aLane(conversation).key);
    const key = partKey(`${runId}:preview:${epoch}.0`);
    const part = {
      key,
      route: aRoute(conversation),
      content: { kind: 'text', text: plainText('half') },
    } as const;
    await store.write(recordPreview, { kind: 'sending', key, runId, part });
    doomed.journal.shown({ key, messageId: '7', laneKey, epoch });
    expect(await store.read(readPreview, { runId })).toBeUndefined();
    doomed.dies();
    const next = await enter(role);
    await next.processes.reapDead();
    expect(await store.read(readPreview, { runId })).toEqual({ key, messageId: '7' });
  },
);

it('reaps all other processes when one has the folder alone', async () => {
  const { enter, boots, removed } = await aFolder();
  const [one, other] = [await enter('worker'), await enter('worker')];
  const { holder } = await enter('all');
  expect(await boots()).toEqual([holder]);
  expect(removed.toSorted()).toEqual([one.name, other.name].toSorted());
});
