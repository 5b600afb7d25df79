/**
 * What a lane does, said once more in memory and without a database: the reference that the store's
 * steps are held to. Waiting items are a list, a run is a list of taken ones; nothing is ever due later.
 */
import type { DropPolicy, QueueMode } from '../../src/contracts/queue-settings.ts';
import type { SteerDelivery } from '../../src/store/lanes/choose-batch.ts';
import { type End, end, type Item, WaitingModel, type Who } from './waiting-model.ts';

export type { Item, Who };

type Run = { readonly who: Who; items: Item[]; cancel: string | undefined; tries: number };

const maxTries = 3;

export class QueueModel extends WaitingModel {
  mode: QueueMode;
  /** What stands in the transcripts: messages, and the summaries put before a run. */
  told: { readonly text: string; readonly item?: Item }[] = [];
  run: Run | undefined;
  #lease: { by: string; isLive: boolean; isHandedOver?: boolean; isParked?: boolean } | undefined;

  constructor(settings: { readonly mode: QueueMode; readonly cap: number; readonly drop: DropPolicy }) {
    super(settings);
    this.mode = settings.mode;
  }

  /** The item, or undefined when it was refused at the door. */
  arrive(who: Who, text: string): Item | undefined {
    if (!this.makeRoom()) return undefined;
    const item = this.add('message', who, text);
    if (this.mode !== 'interrupt' || !this.run) return item;
    this.#cancelRun('interrupt');
    this.promoteAllOf(who);
    return item;
  }

  /** The conversation is a direct one: everybody in it is one person to `/new`. */
  newSession(who: Who): void {
    this.#cancelRun('reset');
    for (const item of this.run?.items ?? []) item.isKept = false;
    this.add('command', who, '/new');
  }

  edit(item: Item, text: string): string {
    item.text = text;
    if (item.state === 'waiting' || this.summaries.includes(item)) return 'replaced';
    if (item.state === 'ended' && !this.#isRead(item)) return this.#wasTold(item) ? 'after-run' : 'ended';
    const [unread] = this.correctionsOf(item);
    if (unread) unread.text = text;
    else this.add('correction', item.who, text, item);
    return 'steered';
  }

  remove(item: Item, reason = 'deleted'): string {
    const isRead = this.#isRead(item);
    if (item.state === 'ended' && !this.summaries.includes(item) && !isRead) return 'after-run';
    for (const one of isRead ? this.correctionsOf(item) : [item]) end(one, ['cancelled', reason]);
    item.isKept = false;
    this.summaries = this.summaries.filter((summary) => summary !== item);
    return isRead ? 'stop-offered' : 'cancelled';
  }

  stop(who: Who): void {
    const theirs = this.run?.items.filter((item) => item.who === who) ?? [];
    if (theirs.length > 0) this.#cancelRun('stop');
    for (const item of theirs) item.isKept = false;
    this.cancelAllOf(who);
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
    const isMine = this.#lease?.by === by && this.run === undefined;
    if (this.#lease?.isLive && !isMine) return 'busy';
    if (this.run) return this.#resume(by, this.run);
    const [head] = this.waiting;
    if (!head) {
      this.#lease = undefined;
      return 'resting';
    }
    if (head.kind === 'command') {
      this.beginSession(head);
      return 'again';
    }
    this.#lease = { by, isLive: true };
    this.run = { who: head.who, items: [], cancel: undefined, tries: 1 };
    const batch = this.mode === 'collect' || this.mode === 'interrupt' ? this.fitting(head.who) : [head];
    this.#take(batch, false);
    for (const item of batch.slice(0, -1)) item.outcome = 'merged';
    return 'run';
  }

  /** What the run takes in at a boundary: in order, but a correction passes what waits for another run. */
  boundary(delivery: SteerDelivery): readonly Item[] {
    if (!this.run || this.run.cancel !== undefined || delivery === 'none') return [];
    const { who } = this.run;
    const fitting = this.mode.startsWith('steer') ? this.fitting(who) : [];
    const late = this.waiting.filter((item) => item.kind === 'correction' && item.who === who);
    const all = [...fitting, ...late.filter((item) => !fitting.includes(item))];
    const steers = fitting.length > 0 && delivery === 'one-at-a-time' ? fitting.slice(0, 1) : all;
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

  /** Ends the run; what it was to keep goes back, in its newest wording. */
  close(outcome: End, mayGoOn: boolean): 'resting' | 'going-on' | 'armed' {
    const kept = this.#open().filter((item) => item.isKept);
    for (const item of kept) Object.assign(item, { state: 'waiting', isKept: false });
    this.told = this.told.filter(({ item }) => item === undefined || !kept.includes(item));
    for (const item of kept.flatMap((one) => this.correctionsOf(one))) end(item, ['merged', 'corrected']);
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

  #take(items: readonly Item[], isKept: boolean): void {
    if (this.summaries.length > 0) this.told.push({ text: `summary of ${this.summaries.length}` });
    this.summaries = [];
    for (const item of items) {
      Object.assign(item, { state: 'taken', isKept });
      this.told.push({ text: item.text, item });
      this.run?.items.push(item);
    }
  }

  #cancelRun(reason: string): void {
    if (this.run) this.run.cancel ??= reason;
    this.unpark();
  }
}
