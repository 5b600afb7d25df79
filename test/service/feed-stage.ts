/**
 * A lane on a real store, the processes that tell its feed, and readers that assemble what they receive as the page does.
 * Every reader remembers what a program would: the frames, and the last id.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { emptyConversation, reduce } from '../../src/client/conversation.js';
import type { Conversation } from '../../src/client/conversation-types.ts';
import type { Clock } from '../../src/contracts/clock.ts';
import type { FeedEvent } from '../../src/contracts/feed.ts';
import type { FeedFrame } from '../../src/contracts/feed-frame.ts';
import { createFeed, type Feed } from '../../src/queue/feed.ts';
import { noLiveEvents } from '../../src/queue/live-events.ts';
import { parsePlace } from '../../src/service/feed-place.ts';
import { createSessionFeeds, type FeedRequest, type SessionFeeds } from '../../src/service/session-feeds.ts';
import type { Store } from '../../src/store/base/command.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { readEndedRuns } from '../../src/store/reads/read-ended-runs.ts';
import { aLane, aMessage, aWorker, endWithout, unique } from '../store/builders.ts';
import { silentLog } from '../support/silent-log.ts';

/** Time in which short waits are turns of the event loop, and long ones end only by their signal. */
const hastyClock: Clock = {
  now: () => Date.now(),
  wait: (ms, signal) => {
    if (ms < 5_000) return turn();
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      signal?.addEventListener('abort', () => resolve(), { once: true });
    });
  },
};

export type Fate = 'heard' | 'lost' | 'twice';

export class FeedStage {
  readonly store: Store;
  readonly conversation = unique('feed');
  readonly laneKey = aLane(this.conversation).key;
  readonly #worker: ReturnType<typeof aWorker>;
  #feed: Feed = aProcess();
  #feeds: SessionFeeds;
  #run: ClaimedRun | undefined;
  #waiting = 0;
  /** The text of the open run. */
  #text = '';
  #over = new AbortController();
  readonly readers: StageReader[] = [];

  constructor(store: Store) {
    this.store = store;
    this.#worker = aWorker(store);
    this.#feeds = this.#start();
  }

  get feeds(): SessionFeeds {
    return this.#feeds;
  }

  get openText(): string {
    return this.#text;
  }

  /** Kills the gateway: what its readers hadn't received is gone, and they come back to the next one. */
  kill(): void {
    this.#over.abort();
    this.#over = new AbortController();
    this.#feed = aProcess();
    this.#feeds = this.#start();
    for (const reader of this.readers) reader.reconnect();
  }

  #start(): SessionFeeds {
    this.#feed.onTextRequest(this.laneKey, () => this.#tellText(0), this.#over.signal);
    const redact = (text: string) => text;
    const { store } = this;
    return createSessionFeeds({
      ...{
        store,
        clock: hastyClock,
        log: silentLog,
        feed: this.#feed,
        redact,
        restoreMark: '',
        mediaDir: '/nonexistent',
      },
    });
  }

  open(request: Omit<FeedRequest, 'laneKey'>, signal: AbortSignal) {
    return this.#feeds.open(
      { laneKey: this.laneKey, ...request },
      AbortSignal.any([signal, this.#over.signal]),
    );
  }

  join(filter: Omit<FeedRequest, 'laneKey' | 'place'> = {}): StageReader {
    const reader = new StageReader(this, filter);
    this.readers.push(reader);
    reader.reconnect();
    return reader;
  }

  tell(event: FeedEvent, fate: Fate = 'heard'): void {
    const times = { heard: 1, lost: 0, twice: 2 }[fate];
    for (let time = 0; time < times; time += 1) this.#feed.publish(this.laneKey, event);
  }

  async ask(fate?: Fate): Promise<void> {
    await this.#worker.accept(aMessage({ conversation: this.conversation, text: unique('words') }));
    this.#waiting += 1;
    this.tell({ kind: 'changed' }, fate);
  }

  async begin(fate?: Fate): Promise<ClaimedRun | undefined> {
    if (this.#run || this.#waiting === 0) return this.#run;
    const claim = await this.#worker.claim(this.laneKey, 60_000);
    this.#waiting = 0;
    if (claim.kind !== 'run') return undefined;
    this.#run = claim.run;
    this.tell({ kind: 'run', runId: this.#run.runId, state: 'started' }, fate);
    return this.#run;
  }

  write(text: string, fate?: Fate): void {
    if (!this.#run) return;
    const at = this.#text.length;
    this.#text += text;
    this.#tellText(at, fate);
  }

  /** Ends the run, with an answer or without one. */
  async end(how: 'answer' | 'stop', fate?: Fate): Promise<void> {
    const run = this.#run;
    if (!run) return;
    this.#text = '';
    if (how === 'answer') {
      const { next } = await this.#worker.answer(run, unique('answer'), { mayKeepLane: false });
      // A message that has come meanwhile extends the run.
      if (next === undefined) return this.tell({ kind: 'changed' }, fate);
    } else await endWithout(this.store, run, 'stop');
    this.#run = undefined;
    this.tell(
      { kind: 'run', runId: run.runId, state: 'ended', ...(how === 'stop' && { reason: 'stop' }) },
      fate,
    );
    this.tell({ kind: 'changed' }, fate);
  }

  #tellText(at: number, fate?: Fate): void {
    const run = this.#run;
    if (run) this.tell({ kind: 'text', runId: run.runId, of: 'chat', at, text: this.#text.slice(at) }, fate);
  }

  async ends(after = 0): Promise<readonly string[]> {
    const { store, laneKey } = this;
    const ends = await store.read(readEndedRuns, { laneKey, after, limit: 1_000 });
    return ends.map(({ runId }) => runId);
  }

  /** Lets everyone read until nothing more comes. */
  async settle(): Promise<void> {
    for (const reader of this.readers) reader.isStalled = false;
    this.tell({ kind: 'changed' });
    this.#tellText(0);
    const count = () => this.readers.reduce((sum, { frames }) => sum + frames.length, 0);
    for (let [quiet, known] = [0, -1]; quiet < 25; quiet = count() === known ? quiet + 1 : 0) {
      known = count();
      for (let turns = 0; turns < 4; turns += 1) await turn();
    }
  }

  close(): void {
    for (const reader of this.readers) reader.leave();
    this.#over.abort();
  }
}

export class StageReader {
  readonly #stage: FeedStage;
  readonly #filter: Omit<FeedRequest, 'laneKey' | 'place'>;
  #connection = new AbortController();
  readonly frames: FeedFrame[] = [];
  conversation: Conversation = emptyConversation;
  isStalled = false;
  /** Whether the feed has ended by itself. */
  isOver = false;

  constructor(stage: FeedStage, filter: Omit<FeedRequest, 'laneKey' | 'place'>) {
    this.#stage = stage;
    this.#filter = filter;
  }

  get lastId(): string | undefined {
    return this.frames.flatMap((frame) => ('id' in frame && frame.id !== undefined ? [frame.id] : [])).at(-1);
  }

  /** The ids of the runs whose end it has been told, each time. */
  get ends(): readonly string[] {
    return this.frames.flatMap((frame) =>
      frame.type === 'event' && frame.event.kind === 'run' && frame.event.state === 'ended'
        ? [frame.event.runId]
        : [],
    );
  }

  /** The number of the last end before it came. */
  get joinedAfter(): number {
    const [first] = this.frames;
    return first?.type === 'snapshot' ? Number(first.id.split(':')[2]) : 0;
  }

  reconnect(): void {
    this.#connection.abort();
    this.#connection = new AbortController();
    void this.#read(this.#connection.signal);
  }

  leave(): void {
    this.#connection.abort();
  }

  async #read(signal: AbortSignal): Promise<void> {
    const session = { laneKey: this.#stage.laneKey, restoreMark: '' };
    const read = this.lastId === undefined ? undefined : parsePlace(session, this.lastId);
    const place = read?.kind === 'place' ? read.place : undefined;
    const feed = this.#stage.open({ ...this.#filter, place }, signal);
    if (!feed) return;
    for await (const batch of feed) {
      if (signal.aborted) return;
      for (const { json } of batch) this.#receive(JSON.parse(json) as FeedFrame);
      while (this.isStalled && !signal.aborted) await turn();
    }
    this.isOver = !signal.aborted;
  }

  #receive(frame: FeedFrame): void {
    this.frames.push(frame);
    this.conversation = reduce(this.conversation, { kind: 'frame', frame });
  }
}

function aProcess(): Feed {
  return createFeed({ clock: hastyClock, log: silentLog, live: noLiveEvents });
}

/** What a reader has assembled that the store, and the run's process, know too. */
export function storedPartOf({ messages, run, preview, position }: Conversation) {
  const sorted = [...messages.values()].toSorted((a, b) => (a.position ?? 0) - (b.position ?? 0));
  return { messages: sorted, position, run: run?.id, text: preview?.text };
}
