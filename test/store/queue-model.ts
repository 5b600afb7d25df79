/**
 * What a lane does, said once more in memory and without a database: the reference that the store's
 * steps are held to. Waiting items are a list, a run is a list of taken ones; nothing is ever due later.
 */
import type { DropPolicy, QueueMode } from '../../src/contracts/queue-settings.ts';
import type { SteerDelivery } from '../../src/store/lanes/choose-batch.ts';

export type Who = 'ann' | 'bob';

export type Item = {
  readonly kind: 'message' | 'correction' | 'command';
  readonly who: Who;
  text: string;
  state: 'waiting' | 'taken' | 'ended';
  outcome: string | null;
  reason: string | null;
  /** Below 0 when somebody, or an interruption, has put it ahead: the lower, the later that was. */
  rank: number;
  /** Steered in by `steer-backlog`, and nothing was decided since. */
  isKept: boolean;
  /** Its sender knows that it waits. */
  hasReceipt: boolean;
  /** Of a correction: what it corrects. */
  readonly corrects: Item | undefined;
};

type Run = { readonly who: Who; items: Item[]; cancel: string | undefined; tries: number };
type End = readonly [outcome: string, reason: string | null];

const maxTries = 3;

export class QueueModel {
  mode: QueueMode;
  cap: number;
  drop: DropPolicy;
  /** Everything that entered, in the order of arrival. */
  readonly items: Item[] = [];
  /** What stands in the transcripts: messages, and the summaries put before a run. */
  told: { readonly text: string; readonly item?: Item }[] = [];
  run: Run | undefined;
  #lease: { by: string; isLive: boolean; isHandedOver?: boolean; isParked?: boolean } | undefined;
  #summaries: Item[] = [];
  #ahead = 0;

  constructor(settings: { readonly mode: QueueMode; readonly cap: number; readonly drop: DropPolicy }) {
    this.mode = settings.mode;
    this.cap = settings.cap;
    this.drop = settings.drop;
  }

  get waiting(): readonly Item[] {
    return this.items.filter((item) => item.state === 'waiting').sort((a, b) => a.rank - b.rank);
  }

  /** The item, or undefined when it was refused at the door. */
  arrive(who: Who, text: string): Item | undefined {
    const messages = this.items.filter((item) => item.state === 'waiting' && item.kind !== 'command');
    const [oldest] = messages;
    if (oldest && messages.length >= this.cap) {
      if (this.drop === 'new') return undefined;
      if (this.drop === 'summarize') this.#summaries.push(oldest);
      end(oldest, this.drop === 'old' ? ['refused', 'queue-full'] : ['merged', 'summarized']);
    }
    const item = this.#add('message', who, text);
    if (this.mode !== 'interrupt' || !this.run) return item;
    this.#cancelRun('interrupt');
    const together = this.waiting.filter((one) => one.who === who);
    if (!this.waiting.some((one) => one.kind === 'command')) this.#putAhead(together);
    return item;
  }

  promote(item: Item): string {
    if (item.kind === 'command') return 'kept';
    if (item.state !== 'waiting') return item.state === 'taken' ? 'working' : 'ended';
    if (this.waiting.some((one) => one.kind === 'command' && this.#isOlder(one, item))) return 'behind';
    this.#putAhead([item]);
    return 'done';
  }

  #putAhead(items: readonly Item[]): void {
    if (this.waiting.slice(0, items.length).every((item) => items.includes(item))) return;
    this.#ahead -= 1;
    for (const item of items) item.rank = this.#ahead;
  }

  #isOlder(item: Item, than: Item): boolean {
    return this.items.indexOf(item) < this.items.indexOf(than);
  }

  /** The conversation is a direct one: everybody in it is one person to `/new`. */
  newSession(who: Who): void {
    this.#cancelRun('reset');
    for (const item of this.run?.items ?? []) item.isKept = false;
    this.#add('command', who, '/new');
  }

  edit(item: Item, text: string): string {
    item.text = text;
    if (item.state === 'waiting' || this.#summaries.includes(item)) return 'replaced';
    if (item.state === 'ended' && !this.#isRead(item)) return this.#wasTold(item) ? 'after-run' : 'ended';
    const [unread] = this.#corrections(item);
    if (unread) unread.text = text;
    else this.#add('correction', item.who, text, item);
    return 'steered';
  }

  remove(item: Item, reason = 'deleted'): string {
    const isSummary = this.#summaries.includes(item);
    const isRead = this.#isRead(item);
    if (item.state === 'ended' && !isSummary && !isRead) return 'after-run';
    for (const one of isRead ? this.#corrections(item) : [item]) end(one, ['cancelled', reason]);
    item.isKept = false;
    this.#summaries = this.#summaries.filter((summary) => summary !== item);
    return isRead ? 'stop-offered' : 'cancelled';
  }

  stop(who: Who): void {
    const theirs = (item: Item) => item.who === who;
    if (this.run?.items.some(theirs)) {
      this.#cancelRun('stop');
      for (const item of this.run.items.filter(theirs)) item.isKept = false;
    }
    for (const item of [...this.waiting, ...this.#summaries].filter(theirs))
      if (item.kind !== 'command') end(item, ['cancelled', 'stop']);
    this.#summaries = this.#summaries.filter((item) => !theirs(item));
  }

  /** Whose senders are told now that they wait. */
  tellWaiting(): readonly Item[] {
    const told = this.waiting.filter((item) => item.kind === 'message' && !item.hasReceipt);
    for (const item of told) item.hasReceipt = true;
    return told;
  }

  expire(): void {
    if (this.#lease && this.run && !this.isParked) this.#lease.isLive = false;
  }

  handOver(isParked = false): void {
    if (this.run && !this.isParked) this.#lease = { by: '', isLive: false, isHandedOver: true, isParked };
  }

  get isParked(): boolean {
    return this.#lease?.isParked ?? false;
  }

  /** The run calls a tool and waits for its answer, unless that has come already, or it is to stop. */
  park(isAnswered: boolean): 'parked' | 'given-back' {
    this.toolTurn();
    this.handOver(!isAnswered && this.run?.cancel === undefined);
    return this.isParked ? 'parked' : 'given-back';
  }

  unpark(): void {
    if (this.#lease) this.#lease.isParked = false;
  }

  claim(by: string): 'busy' | 'parked' | 'resting' | 'again' | 'run' {
    if (this.isParked) return 'parked';
    const isKept = this.#lease?.by === by && this.run === undefined;
    if (this.#lease?.isLive && !isKept) return 'busy';
    if (this.run) return this.#resume(by, this.run);
    const [head] = this.waiting;
    if (!head) {
      this.#lease = undefined;
      return 'resting';
    }
    if (head.kind === 'command') {
      this.#beginSession(head);
      return 'again';
    }
    this.#lease = { by, isLive: true };
    this.run = { who: head.who, items: [], cancel: undefined, tries: 1 };
    const batch = this.mode === 'collect' || this.mode === 'interrupt' ? this.#fitting(head.who) : [head];
    this.#take(batch, false);
    for (const item of batch.slice(0, -1)) item.outcome = 'merged';
    return 'run';
  }

  /** What the run takes in at a boundary. */
  boundary(delivery: SteerDelivery): readonly Item[] {
    if (!this.run || this.run.cancel !== undefined || delivery === 'none') return [];
    const { who } = this.run;
    const fitting = this.mode.startsWith('steer') ? this.#fitting(who) : [];
    const late = this.waiting.filter((item) => item.kind === 'correction' && item.who === who);
    const steers = steersOf({ fitting, late, delivery });
    if (steers.length > 0) this.#take(steers, this.mode === 'steer-backlog');
    return steers;
  }

  /** The model has read what stands there and calls tools. */
  toolTurn(): void {
    for (const item of this.#open()) item.isKept = false;
  }

  /** The last turn's end: what extends the run, or how the lane is left. */
  answer(
    delivery: SteerDelivery,
    mayGoOn: boolean,
  ): readonly Item[] | 'resting' | 'going-on' | 'armed' | 'cancelled' {
    if (this.run?.cancel !== undefined) return 'cancelled';
    const answered = this.#open();
    const steers = this.boundary(delivery);
    for (const item of answered) end(item, item.outcome === 'merged' ? ['merged', null] : ['answered', null]);
    if (this.run && steers.length > 0) this.run.tries = 1;
    return steers.length > 0 ? steers : this.close(['answered', null], mayGoOn);
  }

  close(outcome: End, mayGoOn: boolean): 'resting' | 'going-on' | 'armed' {
    const kept = this.#open().filter((item) => item.isKept);
    for (const item of kept) Object.assign(item, { state: 'waiting', isKept: false });
    this.told = this.told.filter(({ item }) => item === undefined || !kept.includes(item));
    for (const item of this.waiting)
      if (item.corrects && kept.includes(item.corrects)) end(item, ['merged', 'corrected']);
    for (const item of this.#open()) end(item, outcome);
    this.run = undefined;
    const isMore = this.waiting.length > 0;
    if (!isMore || !mayGoOn) this.#lease = undefined;
    if (!isMore) return 'resting';
    return mayGoOn ? 'going-on' : 'armed';
  }

  #resume(by: string, run: Run): 'run' | 'again' {
    if (!this.#lease?.isHandedOver) run.tries += 1;
    if (run.tries > maxTries) {
      this.close(['failed', null], false);
      return 'again';
    }
    this.#lease = { by, isLive: true };
    return 'run';
  }

  /** What the cap summarised before the command goes with the old session; what came after stays. */
  #beginSession(command: Item): void {
    end(command, ['answered', 'command']);
    const isOlder = (item: Item) => this.#isOlder(item, command);
    for (const item of this.#summaries.filter(isOlder)) end(item, ['cancelled', 'reset']);
    this.#summaries = this.#summaries.filter((item) => !isOlder(item));
  }

  /** What the run has taken and not answered. */
  #open(): readonly Item[] {
    return this.run?.items.filter((item) => item.state === 'taken') ?? [];
  }

  /** By the run that is at work, which may have answered it already. */
  #isRead(item: Item): boolean {
    return this.run?.items.includes(item) ?? false;
  }

  #wasTold(item: Item): boolean {
    return this.told.some((one) => one.item === item);
  }

  #corrections(item: Item): readonly Item[] {
    return this.waiting.filter((waiting) => waiting.corrects === item);
  }

  #fitting(who: Who): readonly Item[] {
    const end = this.waiting.findIndex((item) => item.kind === 'command' || item.who !== who);
    return end === -1 ? this.waiting : this.waiting.slice(0, end);
  }

  #take(items: readonly Item[], isKept: boolean): void {
    if (this.#summaries.length > 0) this.told.push({ text: `summary of ${this.#summaries.length}` });
    this.#summaries = [];
    for (const item of items) {
      Object.assign(item, { state: 'taken', isKept });
      this.told.push({ text: item.text, item });
      this.run?.items.push(item);
    }
  }

  #add(kind: Item['kind'], who: Who, text: string, corrects?: Item): Item {
    const fresh = { outcome: null, reason: null, rank: 0, isKept: false, hasReceipt: false };
    const item: Item = { kind, who, text, state: 'waiting', ...fresh, corrects };
    this.items.push(item);
    return item;
  }

  #cancelRun(reason: string): void {
    if (this.run) this.run.cancel ??= reason;
    this.unpark();
  }
}

function end(item: Item, [outcome, reason]: End): void {
  Object.assign(item, { state: 'ended', outcome, reason });
}

type Boundary = {
  readonly fitting: readonly Item[];
  readonly late: readonly Item[];
  readonly delivery: SteerDelivery;
};

/** In the order of arrival; a correction passes what waits for another run. */
function steersOf({ fitting, late, delivery }: Boundary): readonly Item[] {
  if (fitting.length === 0) return late;
  if (delivery !== 'all') return fitting.slice(0, 1);
  return [...fitting, ...late.filter((item) => !fitting.includes(item))];
}
