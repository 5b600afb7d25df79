import type { MessageId } from '#contracts/ids.ts';
import type { Store } from '../../src/store/base/command.ts';
import { readUnsettledMarks, showMarks } from '../../src/store/items/marks.ts';
import { readUnnotified, storeWaitingNotices } from '../../src/store/items/waiting-notices.ts';

/** Gives each waiting message of one lane its mark, as if it had waited for long. */
export async function markWaitingNow(store: Store, lane: string): Promise<void> {
  const unnotified = await store.read(readUnnotified, { afterMs: -60_000 });
  const notices = unnotified
    .filter(({ laneKey }) => laneKey === lane)
    .map((item) => {
      const messageId = item.messageId as MessageId;
      return { ...item, content: { kind: 'reaction', messageId, emoji: '👀' } as const };
    });
  await store.write(storeWaitingNotices, { notices });
}

/** Has the outbox show the marks of one lane, as the sweep does. Returns how many were to change. */
export async function showMarksNow(store: Store, lane: string, canReact = true): Promise<number> {
  const unsettled = await store.read(readUnsettledMarks, {});
  const marks = unsettled
    .filter(({ laneKey }) => laneKey === lane)
    .map(({ inboxId, laneKey }) => ({ inboxId, laneKey, canReact }));
  await store.write(showMarks, { marks });
  return marks.length;
}
