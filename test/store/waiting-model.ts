/** What waits in a lane, for its reference model (queue-model.ts): in order, under a cap, and open to change. */
import type { DropPolicy } from '../../src/contracts/queue-settings.ts';

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

export type End = readonly [outcome: string, reason: string | null];

export function end(item: Item, [outcome, reason]: End): void {
  Object.assign(item, { state: 'ended', outcome, reason });
}

export class WaitingModel {
  cap: number;
  drop: DropPolicy;
  /** Everything that entered, in the order of arrival. */
  readonly items: Item[] = [];
  /** What the cap has made one line of, until a run is shown it. */
  summaries: Item[] = [];
  #ahead = 0;

  constructor({ cap, drop }: { readonly cap: number; readonly drop: DropPolicy }) {
    this.cap = cap;
    this.drop = drop;
  }

  get waiting(): readonly Item[] {
    return this.items.filter((item) => item.state === 'waiting').sort((a, b) => a.rank - b.rank);
  }

  /** False: the newest is refused at the door. The oldest gives way otherwise, whatever its place. */
  makeRoom(): boolean {
    const messages = this.items.filter((item) => item.state === 'waiting' && item.kind !== 'command');
    const [oldest] = messages;
    if (!oldest || messages.length < this.cap) return true;
    if (this.drop === 'new') return false;
    if (this.drop === 'summarize') this.summaries.push(oldest);
    end(oldest, this.drop === 'old' ? ['refused', 'queue-full'] : ['merged', 'summarized']);
    return true;
  }

  add(kind: Item['kind'], who: Who, text: string, corrects?: Item): Item {
    const fresh = { outcome: null, reason: null, rank: 0, isKept: false, hasReceipt: false };
    const item: Item = { kind, who, text, state: 'waiting', ...fresh, corrects };
    this.items.push(item);
    return item;
  }

  promote(item: Item): string {
    if (item.kind === 'command') return 'kept';
    if (item.state !== 'waiting') return item.state === 'taken' ? 'working' : 'ended';
    if (this.waiting.some((one) => one.kind === 'command' && this.#isOlder(one, item))) return 'behind';
    this.#putAhead([item]);
    return 'done';
  }

  /** What an interruption runs next: all of one person's, unless a command is to come first. */
  promoteAllOf(who: Who): void {
    const together = this.waiting.filter((one) => one.who === who);
    if (!this.waiting.some((one) => one.kind === 'command')) this.#putAhead(together);
  }

  #putAhead(items: readonly Item[]): void {
    if (this.waiting.slice(0, items.length).every((item) => items.includes(item))) return;
    this.#ahead -= 1;
    for (const item of items) item.rank = this.#ahead;
  }

  #isOlder(item: Item, than: Item): boolean {
    return this.items.indexOf(item) < this.items.indexOf(than);
  }

  /** Also as the line that the cap made of them. */
  cancelAllOf(who: Who): void {
    for (const item of [...this.waiting, ...this.summaries])
      if (item.who === who && item.kind !== 'command') end(item, ['cancelled', 'stop']);
    this.summaries = this.summaries.filter((item) => item.who !== who);
  }

  /** What the cap summarised before the command goes with the old session; what came after stays. */
  beginSession(command: Item): void {
    end(command, ['answered', 'command']);
    const isOlder = (item: Item) => this.#isOlder(item, command);
    for (const item of this.summaries.filter(isOlder)) end(item, ['cancelled', 'reset']);
    this.summaries = this.summaries.filter((item) => !isOlder(item));
  }

  /** Whose senders are told now that they wait. */
  tellWaiting(): readonly Item[] {
    const told = this.waiting.filter((item) => item.kind === 'message' && !item.hasReceipt);
    for (const item of told) item.hasReceipt = true;
    return told;
  }

  /** The corrections of a message that nobody has read. */
  correctionsOf(item: Item): readonly Item[] {
    return this.waiting.filter((waiting) => waiting.corrects === item);
  }

  /** What one run may take, from the head on. */
  fitting(who: Who): readonly Item[] {
    const end = this.waiting.findIndex((item) => item.kind === 'command' || item.who !== who);
    return end === -1 ? this.waiting : this.waiting.slice(0, end);
  }
}
