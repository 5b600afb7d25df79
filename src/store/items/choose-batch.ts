/**
 * Decides which waiting rows the next run takes. Pure, so that a small reference model can check thousands of cases.
 * The order is (rank, sequence) in every mode, and no row is skipped.
 */
import type { Reach } from '#contracts/inbox-item.ts';
import { isSteering, type QueueMode } from '#contracts/queue-settings.ts';
import { isSameTarget, type RunTarget } from '#contracts/route.ts';

export type QueuedRow = {
  readonly id: string;
  readonly kind: 'message' | 'command';
  readonly target: RunTarget;
  readonly authority: string;
  readonly dueAt: number;
  readonly bundle: string | null;
  readonly reach: Reach;
};

/**
 * Which waiting messages a boundary takes: `joined` only those that belong to what the run has read, such as a forward
 * behind its comment or a correction; `none` at the last turn that a run may have.
 */
export type SteerDelivery = 'one-at-a-time' | 'all' | 'joined' | 'none';

/** The lane's next work: nothing, nothing yet, a command, or rows for a run. */
export type Choice<Row> =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'later'; readonly dueAt: number }
  | { readonly kind: 'command'; readonly row: Row }
  | { readonly kind: 'run'; readonly rows: readonly Row[] };

/** Chooses the lane's next work. `rows`: everything waiting in the lane, in order. */
export function chooseBatch<Row extends QueuedRow>(
  rows: readonly Row[],
  mode: QueueMode,
  now: number,
): Choice<Row> {
  const head = rows[0];
  if (!head) return { kind: 'nothing' };
  if (head.dueAt > now) return { kind: 'later', dueAt: head.dueAt };
  if (head.kind === 'command') return { kind: 'command', row: head };
  const joins = (row: Row) => isTogether(head, row) || (merges(mode) && isCompatible(head, row, now));
  const end = rows.findIndex((row) => !joins(row));
  return { kind: 'run', rows: end === -1 ? rows : rows.slice(0, end) };
}

/** Chooses the rows that a boundary of the active run takes. */
export function chooseSteers<Row extends QueuedRow>(
  rows: readonly Row[],
  run: {
    readonly mode: QueueMode;
    readonly target: RunTarget;
    readonly authority: string;
    readonly delivery: SteerDelivery;
    readonly now: number;
  },
): readonly Row[] {
  const fits = (row: Row) =>
    row.kind === 'message' &&
    row.dueAt <= run.now &&
    row.reach !== 'alone' &&
    row.authority === run.authority &&
    isSameTarget(row.target, run.target);
  if (run.delivery === 'none') return [];
  // They overtake messages that wait for another run.
  const always = rows.filter((row) => row.reach === 'always' && fits(row));
  if (run.delivery === 'joined' || !isSteering(run.mode)) return always;
  const end = rows.findIndex((row) => !fits(row));
  const fitting = end === -1 ? rows : rows.slice(0, end);
  const head = fitting[0];
  if (!head) return always;
  if (run.delivery === 'all') return rows.filter((row) => fitting.includes(row) || always.includes(row));
  return fitting.filter((row) => isTogether(head, row));
}

function merges(mode: QueueMode): boolean {
  return mode === 'collect' || mode === 'interrupt';
}

function isTogether(head: QueuedRow, row: QueuedRow): boolean {
  return row === head || (head.bundle !== null && row.bundle === head.bundle && isAlike(head, row));
}

function isCompatible(head: QueuedRow, row: QueuedRow, now: number): boolean {
  return row.kind === 'message' && row.dueAt <= now && isAlike(head, row);
}

/** Says whether two rows may share a run: only with one target and authority, so no text gets another's rights. */
export function isAlike(
  head: Pick<QueuedRow, 'authority' | 'target' | 'reach'>,
  row: Pick<QueuedRow, 'authority' | 'target' | 'reach'>,
): boolean {
  if (head.reach === 'alone' || row.reach === 'alone') return false;
  return row.authority === head.authority && isSameTarget(row.target, head.target);
}
