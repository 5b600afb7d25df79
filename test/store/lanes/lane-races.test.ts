import { expect, it, onTestFinished } from 'vitest';
import { type QueueMode, queueModes } from '../../../src/contracts/queue-settings.ts';
import type { Store } from '../../../src/store/base/command.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { isLong } from '../../support/long-run.ts';
import { aLane, aMessage, aWorker, defaults, endWithout, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readLane } from '../lane-at-rest.ts';

const claims = isLong ? 10_000 : 150;
/** Per mode. */
const arrivals = isLong ? 5_000 : 60;

describeEachDatabase('two workers on one lane', (open, beside) => {
  it('gives the lane to one worker at a time, under a growing epoch', async () => {
    const other = await beside.open();
    onTestFinished(() => other.close());
    const conversation = unique('c');
    const lane = aLane(conversation, { settings: { ...defaults, mode: 'followup' } });
    const intake = aWorker(open());
    const say = () => intake.accept(aMessage({ conversation, text: unique('text'), lane }));
    for (let n = 0; n < 4; n++) await say();

    const epochs: number[] = [];
    const clashes: string[] = [];
    let holder: string | undefined;
    let asked = 0;
    const work = async (store: Store, name: string) => {
      const worker = aWorker(store, name);
      while (asked < claims || epochs.length < claims / 20) {
        asked += 1;
        const claim = await worker.claim(lane.key);
        if (claim.kind !== 'run') continue;
        if (holder !== undefined) clashes.push(`${name} began beside ${holder} at epoch ${claim.run.epoch}`);
        holder = name;
        epochs.push(claim.run.epoch);
        await say();
        holder = undefined;
        await worker.answer(claim.run, 'ok', { mayKeepLane: false });
      }
    };
    await Promise.all([work(open(), 'boot-a'), work(other, 'boot-b')]);

    expect(clashes).toEqual([]);
    expect(epochs).toEqual([...new Set(epochs)].sort((a, b) => a - b));
    const { inbox, told } = await readLane(open(), lane.key);
    expect(told.length).toBe(inbox.filter((row) => row.state !== 'waiting').length);
    expect(new Set(told.map((message) => message.text)).size).toBe(told.length);
  });
});

describeEachDatabase('a message that arrives exactly as a run ends', (open, beside) => {
  it('lets a message that arrives as a run ends join that run or start the next one, in every mode', async () => {
    const worker = await beside.open();
    onTestFinished(() => worker.close());
    // Concurrent, so that one disk flush serves several lanes.
    const races = await Promise.all(queueModes.map((mode) => raceArrivals({ mode, intake: open(), worker })));
    for (const { mode, laneKey, texts, strays } of races) {
      expect({ mode, strays }).toEqual({ mode, strays: [] });
      const { inbox, told, openRuns } = await readLane(open(), laneKey);
      expect(told.map((message) => message.text)).toEqual(texts);
      expect(inbox).toHaveLength(texts.length);
      expect(inbox.filter((row) => row.state !== 'ended' || row.outcome === null)).toEqual([]);
      expect(openRuns).toBe(0);
    }
  }, 300_000);
});

type Race = { readonly mode: QueueMode; readonly intake: Store; readonly worker: Store };

/**
 * Races each message, sent over another connection, against the end of the run before it.
 * `strays`: messages that found the run active, but whose run then left the lane idle without them.
 */
async function raceArrivals({ mode, intake, worker }: Race) {
  const conversation = unique('c');
  const lane = aLane(conversation, { settings: { ...defaults, mode, quietMs: 0 } });
  const receiver = aWorker(intake);
  const runner = aWorker(worker, 'boot-racer');
  const texts = Array.from({ length: arrivals }, (_, n) => `${mode} ${n}`);
  const strays: string[] = [];
  let run: ClaimedRun | undefined;

  const claim = async () => {
    const claimed = await runner.claim(lane.key);
    run = claimed.kind === 'run' ? claimed.run : undefined;
  };
  /** Answers, or ends the run as cancelled if the arrival has interrupted it. */
  const end = async (ending: ClaimedRun) => {
    const { next, cancelReason } = await runner.answer(ending, 'ok', { mayKeepLane: false });
    if (cancelReason === undefined) return { next };
    return endWithout(worker, ending, cancelReason, { outcome: 'cancelled' });
  };
  for (const text of texts) {
    const ending = run ? end(run) : undefined;
    const [{ effects }, ended] = await Promise.all([
      receiver.accept(aMessage({ conversation, text, lane })),
      ending,
    ]);
    if (ended?.next?.kind === 'idle' && effects.arrivals.length > 0) strays.push(text);
    if (ended === undefined || ended.next !== undefined) await claim();
  }
  while (run) {
    const { next } = await end(run);
    if (next !== undefined) await claim();
  }
  return { mode, laneKey: lane.key, texts, strays };
}
