import type { DropPolicy } from '#contracts/queue-settings.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { fillText } from '../../texts/chat-texts.ts';
import type { StepTx, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { type InboxContent, json, type Summary } from '../base/json.ts';
import { oneLine, summaryLineOf } from '../base/one-line.ts';
import { changeRow, findRow, readRow } from '../base/row-access.ts';
import { insertNotice } from '../delivery/part.ts';
import { endItems, endSummarized, reopenSummarized, summarized } from '../rows/item.ts';
import { type Lane, lockLane } from '../rows/lane.ts';
import type { NewItem } from './enqueue-item.ts';
import { wakeIfIdle } from './item-change.ts';
import { type OpenItem, readOpenItems } from './waiting-items.ts';

/**
 * Keeps the lane under its cap. Overflow is never silent: the sender is notified, and the dropped message's outcome
 * records it.
 */
export async function enforceCap(
  tx: StepTx,
  {
    lane,
    item,
    accepting,
    open,
  }: {
    readonly lane: Lane;
    readonly item: NewItem;
    readonly accepting: EventStep;
    /** Open items of the lane, in order. */
    readonly open: readonly OpenItem[];
  },
): Promise<'room' | 'refused'> {
  if (item.kind === 'command') return 'room';
  // Parley's own items are never dropped and don't count. The oldest message is dropped, even if it was promoted.
  const waiting = open
    .filter((row) => row.kind === 'message' && row.source === 'platform' && row.state === 'waiting')
    .toSorted((a, b) => a.seq - b.seq);
  if (waiting.length < lane.cap) return 'room';
  const { proposal, input, effects } = accepting;
  effects.overflows.push({ laneKey: lane.key, drop: lane.drop as DropPolicy });
  const tell = async (text: string, route: ReplyRoute) => {
    // One notice per event: a second overflow by the same redelivered event changes nothing.
    const key = `${input.account}:${proposal.eventKey}:overflow`;
    effects.deliveries.push(await insertNotice(tx, { key, route, text }));
  };
  if (lane.drop === 'new') {
    await tell(fillText(tx.texts.queueFull, { waiting: lane.cap }), item.route);
    return 'refused';
  }
  const [first] = waiting;
  if (!first) return 'room';
  const oldest = { ...first, ...(await readContentAndRoute(tx, first.id)) };
  const tellDropped = ({ content, route }: Said) =>
    tell(fillText(tx.texts.queueDroppedOld, { excerpt: oneLine(content.text) }), route);
  if (lane.drop === 'old') {
    await endItems(tx, [oldest.id], dropped);
    await tellDropped(oldest);
    return 'room';
  }
  const cut = await summarize(tx, lane, oldest);
  if (cut === undefined) {
    await tell(tx.texts.queueSummarised, oldest.route);
    return 'room';
  }
  await endSummarized(tx, [cut.inboxId], dropped);
  await tellDropped(await readContentAndRoute(tx, cut.inboxId));
  return 'room';
}

const dropped = { outcome: 'refused', outcomeReason: 'queue-full' } as const;

type Said = { readonly content: InboxContent; readonly route: ReplyRoute };

/** Reads the content and route of a dropped message, whose sender is notified in the same chat. */
async function readContentAndRoute(tx: Tx, id: string): Promise<Said> {
  const row = await readRow(tx, 'inbox', id, ['content', 'route']);
  return { content: json.content(row.content), route: json.route(row.route) };
}

/** The most summary lines that the next run reads, however long it takes to begin. */
const maxSummaries = 200;

/**
 * Reduces the row to one line before the next run, into which it ends merged. When there are too many lines, removes
 * the oldest one and returns it.
 */
async function summarize(
  tx: Tx,
  lane: Lane,
  row: { id: string; seq: number; content: InboxContent },
): Promise<Summary | undefined> {
  const line = summaryLineOf(row.content);
  const fresh = await findRow(tx, 'lanes', lane.key, ['overflow']);
  const summary: Summary = { inboxId: row.id, seq: row.seq, line };
  const all = [...json.summaries(fresh?.overflow ?? null), summary];
  const overflow = all.slice(-maxSummaries);
  await changeRow(tx, 'lanes', lane.key, { overflow: JSON.stringify(overflow) });
  await endItems(tx, [row.id], { outcome: 'merged', outcomeReason: summarized });
  return all.length > overflow.length ? all[0] : undefined;
}

/** The platform event that a step handles, and where the step's effects are collected. */
type EventStep = {
  readonly input: { readonly account: string };
  readonly proposal: { readonly eventKey: string; readonly conversationKey: string };
  readonly effects: Effects;
};

/**
 * Makes the newest summarized message wait again when no other message is waiting. Otherwise no run would begin that
 * reads the summary lines until somebody happens to write. Call it after each step that withdraws waiting messages. The
 * caller holds the lane's lock.
 */
export async function reviveSummary(
  tx: Tx,
  laneKey: string,
  effects: Pick<Effects, 'wakes' | 'arrivals'>,
): Promise<void> {
  const lane = await lockLane(tx, laneKey);
  const summaries = json.summaries(lane?.overflow ?? null).toSorted((a, b) => a.seq - b.seq);
  const newest = summaries.pop();
  if (!lane || !newest) return;
  const open = await readOpenItems(tx, laneKey);
  if (open.some(({ kind, state }) => kind === 'message' && state === 'waiting')) return;
  const overflow = summaries.length === 0 ? null : JSON.stringify(summaries);
  await changeRow(tx, 'lanes', laneKey, { overflow });
  await reopenSummarized(tx, newest.inboxId);
  effects.arrivals.push(laneKey);
  wakeIfIdle(tx, lane, effects);
}
