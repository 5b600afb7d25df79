import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '#contracts/clock.ts';
import type { Store } from '../../store/base/command.ts';
import { type Slice, type TalliedTable, tallyRows } from '../../store/reads/tally-rows.ts';

/** How many rows are in each state, over all that were ever stored. */
export type Tally = Readonly<Record<string, number>>;

export interface Tallies {
  count(of: TalliedTable): Promise<Tally>;
}

/** Rows per read, which take a few milliseconds of the event loop on SQLite. */
const sliceRows = 1_000;
/**
 * A finished slice of this age, ms, hardly changes any more, so its counts are remembered. An operator may still resend
 * a part, or an owner admit a stranger, so each count rereads one remembered slice, in turn.
 */
const settledAfterMs = 120_000;
/** A count is reused for this many times its duration, so that counting takes a twentieth of the time at most. */
const restFactor = 20;

/** Counts on request, slice by slice, so that the event loop is never held for long. */
export function createTallies(deps: { readonly store: Store; readonly clock: Clock }): Tallies {
  const counters = new Map<TalliedTable, () => Promise<Tally>>();
  return {
    count: (of) => {
      const known = counters.get(of) ?? createCounter(deps, of);
      counters.set(of, known);
      return known();
    },
  };
}

function createCounter(
  { store, clock }: { store: Store; clock: Clock },
  of: TalliedTable,
): () => Promise<Tally> {
  const settled = new Map<number, Slice>();
  let last: { readonly tally: Tally; readonly until: number } | undefined;
  let counting: Promise<Tally> | undefined;
  let counts = 0;

  const countAll = async (): Promise<Tally> => {
    const startedAt = clock.now();
    const sum: Record<string, number> = {};
    const anew = [...settled.keys()][counts++ % settled.size];
    for (let after: number | undefined = 0; after !== undefined; ) {
      const known = after === anew ? undefined : settled.get(after);
      const slice: Slice = known ?? (await store.read(tallyRows, { of, after, size: sliceRows }));
      for (const [place, count] of Object.entries(slice.places)) sum[place] = (sum[place] ?? 0) + count;
      if (isSettled(slice, startedAt)) settled.set(after, slice);
      else settled.delete(after);
      after = slice.next;
      await nextTurn();
    }
    const now = clock.now();
    last = { tally: sum, until: now + (now - startedAt) * restFactor };
    return sum;
  };

  return async () => {
    if (last && clock.now() < last.until) return last.tally;
    counting ??= countAll().finally(() => {
      counting = undefined;
    });
    return counting;
  };
}

/** False for the last slice, which still grows. */
function isSettled({ next, newestAt, places }: Slice, now: number): boolean {
  if (next === undefined || newestAt > now - settledAfterMs) return false;
  // An item's place ends in its source.
  return Object.keys(places).every((place) => !moving.has(place.replace(/@.*/, '')));
}

const moving: ReadonlySet<string> = new Set([
  'held',
  'waiting',
  'taken',
  'provisional',
  'lost',
  'active',
  'live',
  'pending',
  'sending',
]);
