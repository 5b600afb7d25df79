/**
 * The behavior of a lane restated in memory, without a database: the reference that the store's steps are compared
 * with. All items are kept in order of arrival, a run keeps what it took, and nothing is due later.
 * It has only about 200 lines of code, so that it is easy to understand.
 */
import type { DropPolicy, QueueMode } from '../../../src/contracts/queue-settings.ts';
import type { SteerDelivery } from '../../../src/store/items/choose-batch.ts';

export type Who = 'ann' | 'bob';

const fresh = {
  state: 'waiting' as 'waiting' | 'taken' | 'ended',
  outcome: null as string | null,
  reason: null as string | null,
  /** Below 0 if a person or an interruption has put it ahead; the later that was, the lower the rank. */
  rank: 0,
  /** The cap has made it part of the summary, which no run has been shown yet. */
  isSummarized: false,
  /** Steered in by `steer-backlog`; goes back to the queue if the run ends before it has read the item. */
  isKept: false,
};

export type Item = typeof fresh & {
  readonly kind: 'message' | 'correction' | 'command';
  readonly who: Who;
  text: string;
  /** If it is a correction: the item that it corrects. */
  readonly corrects: Item | undefined;
};

type Run = { readonly who: Who; readonly items: Item[]; cancel: string | undefined; attempts: number };
type Lease = { readonly by: string; readonly is: 'live' | 'given-back' | 'parked' };
type LaneLeft = 'idle' | 'continuing' | 'armed';
type Settings = { readonly mode: QueueMode; readonly cap: number; readonly drop: DropPolicy };

export class QueueModel {
  settings: Settings;
  /** In the order of arrival. */
  readonly items: Item[] = [];
  /** The transcripts' content: messages, and the summaries put before a run. */
  told: { readonly text: string; readonly item?: Item }[] = [];
  run: Run | undefined;
  lease: Lease | undefined;
  #ahead = 0;

  constructor(settings: Settings) {
    this.settings = settings;
  }

  readonly waiting = () => this.items.filter(isWaiting).sort((a, b) => a.rank - b.rank);
  readonly #open = () => this.run?.items.filter(({ state }) => state === 'taken') ?? [];
  readonly #isRead = (item: Item) => this.run?.items.includes(item) ?? false;
  readonly #correctionsOf = (item: Item) => this.waiting().filter((one) => one.corrects === item);
  readonly #before = (item: Item) => this.items.slice(0, this.items.indexOf(item));

  /** Adds the item; returns undefined if it was refused. */
  arrive(who: Who, text: string): Item | undefined {
    if (!this.#makeRoom()) return undefined;
    const item = this.#add('message', who, text);
    if (this.settings.mode !== 'interrupt' || !this.run) return item;
    this.#cancelRun('interrupt');
    if (!this.waiting().some(isCommand)) this.#putAhead(this.waiting().filter((one) => one.who === who));
    return item;
  }

  /** Enforces the cap; returns false if the newest is refused. Otherwise the oldest gives way, whatever its rank. */
  #makeRoom(): boolean {
    const { cap, drop } = this.settings;
    const [oldest, ...others] = this.items.filter((item) => isWaiting(item) && !isCommand(item));
    if (!oldest || others.length < cap - 1) return true;
    if (drop === 'new') return false;
    if (drop === 'old') end(oldest, 'refused', 'queue-full');
    else end(oldest, 'merged', 'summarized');
    oldest.isSummarized = drop !== 'old';
    return true;
  }

  #add(kind: Item['kind'], who: Who, text: string, corrects?: Item): Item {
    const item = { ...fresh, kind, who, text, corrects };
    this.items.push(item);
    return item;
  }

  edit(item: Item, text: string): string {
    item.text = text;
    if (isUnread(item)) return 'replaced';
    const [unread] = this.#correctionsOf(item);
    if (unread) unread.text = text;
    else if (this.#isRead(item)) this.#add('correction', item.who, text, item);
    else return this.told.some((one) => one.item === item) ? 'after-run' : 'ended';
    return 'steered';
  }

  /** Removes the item with its corrections, including those that came too late for its run. */
  remove(item: Item, reason = 'deleted'): string {
    const wasUnread = isUnread(item);
    for (const one of wasUnread ? [item] : this.#correctionsOf(item)) end(one, 'cancelled', reason);
    for (const one of this.items) if (one === item || one.corrects === item) one.isKept = false;
    this.#revive();
    if (wasUnread) return 'cancelled';
    return this.#isRead(item) ? 'stop-offered' : 'after-run';
  }

  promote(item: Item): string {
    if (isCommand(item)) return 'kept';
    if (!isWaiting(item)) return item.state === 'taken' ? 'working' : 'ended';
    if (this.#before(item).some((one) => isWaiting(one) && isCommand(one))) return 'behind';
    this.#putAhead([item]);
    return 'done';
  }

  #putAhead(items: readonly Item[]): void {
    const ahead = this.waiting().slice(0, items.length);
    if (ahead.every((item) => items.includes(item))) return;
    this.#ahead -= 1;
    for (const item of items) item.rank = this.#ahead;
  }

  stop(who: Who): void {
    const theirs = this.items.filter((item) => item.who === who && !isCommand(item));
    if (theirs.some(this.#isRead)) this.#cancelRun('stop');
    for (const item of theirs) item.isKept = false;
    for (const item of theirs.filter(isUnread)) end(item, 'cancelled', 'stop');
    this.#revive();
  }

  /** Requeues a summarized message if no waiting message is left before which a run would read the summary. */
  #revive(): void {
    const newest = this.items.findLast((item) => item.isSummarized);
    const isLeft = this.waiting().some((item) => !isCommand(item));
    const again = { state: 'waiting', outcome: null, reason: null, isSummarized: false };
    if (newest && !isLeft) Object.assign(newest, again);
  }

  /** Starts a session. The conversation is direct, so `/new` treats everybody in it as one person. */
  newSession(who: Who): void {
    this.#cancelRun('reset');
    this.toolTurn();
    this.#add('command', who, '/new');
  }

  claim(by: string): 'busy' | 'parked' | 'idle' | 'again' | 'run' {
    if (this.lease?.is === 'parked') return 'parked';
    if (this.lease?.is === 'live' && (this.run || this.lease.by !== by)) return 'busy';
    if (this.run) return this.#resume(by, this.run);
    const [head] = this.waiting();
    if (!head) this.lease = undefined;
    if (!head) return 'idle';
    if (isCommand(head)) return this.#beginSession(head);
    this.lease = { by, is: 'live' };
    this.run = { who: head.who, items: [], cancel: undefined, attempts: 1 };
    const batch = ['collect', 'interrupt'].includes(this.settings.mode) ? this.#fitting(head.who) : [head];
    this.#take(batch, false);
    for (const item of batch.slice(0, -1)) item.outcome = 'merged';
    return 'run';
  }

  /** What the cap summarized before the command ends with the old session; what came after stays. */
  #beginSession(command: Item): 'again' {
    end(command, 'answered', 'command');
    for (const item of this.#before(command)) if (item.isSummarized) end(item, 'cancelled', 'reset');
    return 'again';
  }

  #resume(by: string, run: Run): 'run' | 'again' {
    if (this.lease?.is !== 'given-back') run.attempts += 1;
    this.lease = { by, is: 'live' };
    if (isGivenUp(run)) this.close('failed', 'gave_up', false);
    return this.run ? 'run' : 'again';
  }

  /** Returns what one run may take, from the head on. */
  #fitting(who: Who): readonly Item[] {
    const end = this.waiting().findIndex((item) => isCommand(item) || item.who !== who);
    return end === -1 ? this.waiting() : this.waiting().slice(0, end);
  }

  #take(items: readonly Item[], isKept: boolean): void {
    const summarized = this.items.filter((item) => item.isSummarized);
    if (summarized.length > 0) this.told.push({ text: `summary of ${summarized.length}` });
    for (const item of summarized) item.isSummarized = false;
    for (const item of items) Object.assign(item, { state: 'taken', isKept });
    this.told.push(...items.map((item) => ({ text: item.text, item })));
    this.run?.items.push(...items);
  }

  /** Takes in what a boundary allows: in order, but a correction passes items that wait for another run. */
  boundary(delivery: SteerDelivery): readonly Item[] {
    const { run, settings } = this;
    if (!run || run.cancel !== undefined || delivery === 'none') return [];
    const isSteering = settings.mode.startsWith('steer') && delivery !== 'joined';
    const fitting = isSteering ? this.#fitting(run.who) : [];
    const late = this.waiting().filter((item) => item.kind === 'correction' && item.who === run.who);
    const all = [...new Set([...fitting, ...late])];
    const steers = fitting.length > 0 && delivery === 'one-at-a-time' ? fitting.slice(0, 1) : all;
    if (steers.length > 0) this.#take(steers, settings.mode === 'steer-backlog');
    return steers;
  }

  /** The model has read the transcript and calls tools. */
  toolTurn(): void {
    for (const item of this.#open()) item.isKept = false;
  }

  /** Ends the last turn; returns what extends the run, or how the lane is left. */
  answer(delivery: SteerDelivery, mayKeepLane: boolean): readonly Item[] | 'cancelled' | LaneLeft {
    if (this.run?.cancel !== undefined) return 'cancelled';
    const answered = this.#open();
    const steers = this.boundary(delivery);
    for (const item of answered) end(item, item.outcome ?? 'answered', null);
    if (steers.length === 0) return this.close('answered', null, mayKeepLane);
    if (this.run) this.run.attempts = 1;
    return steers;
  }

  /** Ends the run; retained steers go back into the queue, in their newest wording. */
  close(outcome: string, reason: string | null, mayKeepLane: boolean): LaneLeft {
    const kept = this.#open().filter((item) => item.isKept);
    for (const item of kept) Object.assign(item, { state: 'waiting', isKept: false });
    this.told = this.told.filter(({ item }) => item === undefined || !kept.includes(item));
    for (const item of kept.flatMap(this.#correctionsOf)) end(item, 'merged', 'corrected');
    for (const item of this.#open()) end(item, outcome, reason);
    this.run = undefined;
    const isMore = this.waiting().length > 0;
    if (!isMore || !mayKeepLane) this.lease = undefined;
    return isMore ? (mayKeepLane ? 'continuing' : 'armed') : 'idle';
  }

  expire(): void {
    if (this.run && this.lease?.is === 'live') this.lease = undefined;
  }

  handOver(is: 'given-back' | 'parked' = 'given-back'): void {
    if (this.run && this.lease?.is !== 'parked') this.lease = { by: '', is };
  }

  /** Parks the run on a tool call, unless the call is already answered or the run is to stop. */
  park(isAnswered: boolean): 'parked' | 'given-back' {
    this.toolTurn();
    const is = isAnswered || this.run?.cancel !== undefined ? 'given-back' : 'parked';
    this.handOver(is);
    return is;
  }

  unpark(): void {
    if (this.lease?.is === 'parked') this.lease = { by: '', is: 'given-back' };
  }

  #cancelRun(reason: string): void {
    if (this.run) this.run.cancel ??= reason;
    this.unpark();
  }
}

/** Returns whether the run has used up its attempts. Its open calls are closed with it. */
export const isGivenUp = ({ attempts }: Pick<Run, 'attempts'>) => attempts > 3;
const isWaiting = (item: Item) => item.state === 'waiting';
const isCommand = (item: Item) => item.kind === 'command';
/** No run has read the item. */
const isUnread = (item: Item) => isWaiting(item) || item.isSummarized;

function end(item: Item, outcome: string, reason: string | null): void {
  Object.assign(item, { state: 'ended', outcome, reason, isSummarized: false });
}
