import { expect, it } from 'vitest';
import { aLane, aMessage, aWorker, unique } from './builders.ts';
import { describeEachDatabase } from './each-database.ts';

describeEachDatabase('a batch for several lanes', (open, beside) => {
  // One writer thread has no order to keep.
  const onPostgres = beside.dialect === 'postgres';

  it.runIf(onPostgres)('locks them in key order, so that two batches never wait for each other', async () => {
    const [low, high] = [unique('a'), unique('b')];
    const said = (text: string) => [high, low].map((conversation) => aMessage({ conversation, text }));
    const worker = aWorker(open());
    await worker.accept(...said('first'));
    const lock = (conversation: string) =>
      `select 1 from lanes where key = '${aLane(conversation).key}' for update`;
    const held = `select pg_sleep(300) /* ${high} */`;
    const holding = beside.sql(`${lock(high)}; ${held}`).catch(() => undefined);
    const isHeld = (conversation: string) =>
      beside.sql(`${lock(conversation)} nowait`).then(
        () => false,
        () => true,
      );
    await expect.poll(() => isHeld(high)).toBe(true);
    const accepting = worker.accept(...said('second'));
    // It waits for the higher lane, and holds the lower one by then, although that came behind it.
    await expect.poll(() => isHeld(low)).toBe(true);
    await beside.sql(`select pg_terminate_backend(pid) from pg_stat_activity
      where query like '%/* ${high} */' and pid <> pg_backend_pid()`);
    await Promise.all([holding, accepting]);
  });
});
