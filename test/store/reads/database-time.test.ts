import { expect, it, onTestFinished, vi } from 'vitest';
import { readLaneWork } from '../../../src/store/reads/read-busy.ts';
import { readOpenCounts } from '../../../src/store/reads/read-open-counts.ts';
import { aConversation } from '../a-conversation.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('the holder of a run', (open, { dialect }) => {
  it.runIf(dialect === 'postgres')("judges by the database's clock whether a run is held", async () => {
    const { lane, begin } = aConversation(open());
    await begin();
    const ahead = Date.now() + 3_600_000;
    const clock = vi.spyOn(Date, 'now').mockReturnValue(ahead);
    onTestFinished(() => clock.mockRestore());
    const { run } = await open().read(readLaneWork, { laneKey: lane.key });
    const { lanes, now } = await open().read(readOpenCounts, {});
    expect(run).toMatchObject({ isHeld: true });
    expect(lanes).toMatchObject({ active: 1, unheld: 0 });
    expect(now).toBeLessThan(ahead);
  });
});
