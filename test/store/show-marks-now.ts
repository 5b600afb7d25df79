import type { Store } from '../../src/store/base/command.ts';
import { readUnsettledMarks, showMarks } from '../../src/store/items/marks.ts';

/** Has the outbox show the marks of one lane, as the sweep does. Returns how many were to change. */
export async function showMarksNow(store: Store, lane: string, canReact = true): Promise<number> {
  const unsettled = await store.read(readUnsettledMarks, {});
  const marks = unsettled
    .filter(({ laneKey }) => laneKey === lane)
    .map(({ inboxId, laneKey }) => ({ inboxId, laneKey, canReact }));
  await store.write(showMarks, { marks });
  return marks.length;
}
