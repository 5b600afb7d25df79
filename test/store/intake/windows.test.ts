/** Two settings: `debounceMs` waits before a first run, `quietMs` after one. Neither does the other's job. */
import { expect, it } from 'vitest';
import type { QueueSettings } from '../../../src/contracts/queue-settings.ts';
import type { Store, StoreQuery } from '../../../src/store/base/command.ts';
import type { NewItem } from '../../../src/store/items/enqueue-item.ts';
import { aConversation } from '../a-conversation.ts';
import { newCommand } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readLane } from '../lane-at-rest.ts';

/** Longer than any test takes, so whatever waits for it is never due. */
const long = 600_000;

function aScene(store: Store, settings: Partial<QueueSettings>) {
  const { lane, worker, say } = aConversation(store, {
    settings: { mode: 'collect', quietMs: 0, ...settings },
  });
  const says = (text: string, item: Partial<NewItem> = {}, sender = 'ann') =>
    say(text, { sender, lane, item });
  const told = async () => (await readLane(store, lane.key)).told.map(({ text }) => text);
  return { worker, lane, says, told };
}

const readDues: StoreQuery<
  { readonly laneKey: string },
  readonly { readonly dueAt: number; readonly createdAt: number; readonly bundle: string | null }[]
> = {
  query: 'readDues',
  run: (tx, { laneKey }) =>
    tx.db
      .selectFrom('inbox')
      .select(['dueAt', 'createdAt', 'bundle'])
      .where('laneKey', '=', laneKey)
      .where('state', '=', 'waiting')
      .execute(),
};

describeEachDatabase('the debounce and the quiet window', (open) => {
  it("delays a first run by the debounce, which restarts with the sender's next message", async () => {
    const { worker, lane, says } = aScene(open(), { debounceMs: long });
    const first = await says('one');
    const second = await says('two');
    for (const { effects } of [first, second])
      expect(effects.wakes[0]?.delayMs).toBeGreaterThan(long - 60_000);
    expect((await worker.claim(lane.key)).kind).toBe('armed');
  });

  it('joins the messages sent within the debounce into one run', async () => {
    const { worker, lane, says, told } = aScene(open(), { debounceMs: 300 });
    await says('one');
    await says('two');
    await expect.poll(async () => (await worker.claim(lane.key)).kind, { timeout: 300_000 }).toBe('run');
    expect(await told()).toEqual(['one', 'two']);
  });

  it("doesn't apply the debounce to a message that waits for an active run", async () => {
    const { worker, lane, says } = aScene(open(), { mode: 'followup', debounceMs: 200 });
    await says('one');
    await expect.poll(async () => (await worker.claim(lane.key)).kind, { timeout: 300_000 }).toBe('run');
    const { effects } = await says('two');
    expect(effects.arrivals).toEqual([lane.key]);
    const [waiting] = await open().read(readDues, { laneKey: lane.key });
    expect(waiting).toMatchObject({ bundle: null });
    expect(waiting?.dueAt).toBe(waiting?.createdAt);
  });

  it("doesn't apply the quiet window to a first run", async () => {
    const { worker, lane, says } = aScene(open(), { quietMs: long });
    await says('one');
    expect((await worker.claim(lane.key)).kind).toBe('run');
  });

  it('applies the quiet window to a message that waits for an active run', async () => {
    const { worker, lane, says } = aScene(open(), { quietMs: long });
    await says('one');
    const run = await worker.claimRun(lane.key);
    await says('two');
    expect((await worker.answer(run, 'ok')).next).toMatchObject({ kind: 'armed' });
    expect((await worker.claim(lane.key)).kind).toBe('armed');
  });

  it('ends the debounce when a command follows', async () => {
    const { worker, lane, says } = aScene(open(), { debounceMs: long });
    await says('one');
    const sender = { id: 'ann', name: 'ann' };
    const command = newCommand;
    const content = { text: '/new', prompt: '/new', sender, sentAt: 1, attachments: [], command };
    await says('/new', { kind: 'command', content });
    expect((await worker.claim(lane.key)).kind).toBe('run');
  });

  it('applies the debounce to each sender separately', async () => {
    const { worker, lane, says } = aScene(open(), { debounceMs: long });
    await says('one');
    await says('two', {}, 'bob');
    expect((await worker.claim(lane.key)).kind).toBe('armed');
    expect((await readLane(open(), lane.key)).inbox).toHaveLength(2);
  });

  it('keeps the window of a text that continues, whatever others send during an active run', async () => {
    const { worker, lane, says, told } = aScene(open(), { quietMs: 0 });
    await says('go');
    const run = await worker.claimRun(lane.key);
    await says('@bot a very long', { bundle: { name: 'text:ann', windowMs: long } });
    await says('meanwhile', {}, 'bob');
    const rest = await says('text', { passesGate: false });
    expect(rest.acceptances).toMatchObject([{ kind: 'accepted' }]);
    await worker.answer(run, 'ok');
    expect((await worker.claim(lane.key)).kind).toBe('run');
    expect((await told()).slice(-3)).toEqual(['@bot a very long', 'meanwhile', 'text']);
  });
});
