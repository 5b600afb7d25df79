/**
 * A lane as its followers see it, read from the store once for all of them. A pass reads what has changed; events only
 * say when, and add what the store doesn't have: drafts, output, progress. Ends of runs come from the store alone, so
 * each is told once.
 */
import type { Clock } from '#contracts/clock.ts';
import { changesLane, type FeedEvent } from '#contracts/feed.ts';
import type { FeedDraft, FeedFrame } from '#contracts/feed-frame.ts';
import type { Log } from '#contracts/log.ts';
import type { TimelineActivity, TimelineItem } from '#contracts/timeline.ts';
import { readItems } from '../channel-host/timeline.ts';
import { withPiece } from '../client/text-piece.js';
import type { Feed } from '../queue/feed.ts';
import { readableText } from '../replies/reply-pipeline.ts';
import type { Store } from '../store/base/command.ts';
import { readActivity } from '../store/reads/read-activity.ts';
import {
  type EndedRun,
  findRunPlace,
  type RunPlace,
  readEndedRuns,
  readLastEnd,
} from '../store/reads/read-ended-runs.ts';
import { type EncodedFrame, encode, type FeedBatch, PendingFrames } from './feed-batch.ts';
import { type FeedPlace, type FeedSession, formatPlace } from './feed-place.ts';
import type { FeedReader } from './feed-reader.ts';

export type LaneViewDeps = {
  readonly store: Pick<Store, 'read'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly feed: Pick<Feed, 'subscribe' | 'requestText'>;
  /** Where files that were sent are kept. */
  readonly mediaDir: string;
  /** Removes secrets. */
  redact(text: string): string;
};

/** This many of the newest messages are compared in each pass, since their states may change, and begin a new feed. */
const windowSize = 50;
/** A reader that is further behind than this gets only the newest messages. */
const maxBehind = 200;
/** Ends of runs that a returning reader gets at once. */
const maxEnds = 100;
/** Pause between two passes, and after one that the store failed, ms. */
const passMs = 100;
const retryMs = 1_000;
/** How long lost pieces of text are collected before the whole text is requested, ms. */
const textRequestMs = 50;
/** How long an event may be lost unnoticed, ms: while a run or a message is open, and otherwise. */
const busyLookMs = 5_000;
const idleLookMs = 30_000;
/** Longest pause between two batches, ms. */
const maxPauseMs = 500;
/** How many ended runs are remembered, of which late events are dropped. */
const maxEnded = 50;

const openStates: ReadonlySet<string> = new Set(['held', 'waiting', 'taken', 'delivering']);

type Pass = {
  readonly items: readonly TimelineItem[];
  readonly ends: readonly EndedRun[];
  readonly activity: TimelineActivity;
  readonly runs: ReadonlyMap<string, RunPlace | undefined>;
  readonly joining: readonly JoiningReader[];
};

type JoiningReader = {
  readonly reader: FeedReader;
  readonly ends: readonly EndedRun[];
  /** Absent while more ends are to be told first. */
  readonly missed?: MissedItems;
};

type KnownItem = { readonly position: number; readonly json: string };

/** Messages after a position. */
type MissedItems = { readonly after: number; readonly items: readonly TimelineItem[] };

export class LaneView {
  readonly #deps: LaneViewDeps;
  readonly #session: FeedSession;
  readonly #of: string;
  readonly #readers = new Set<FeedReader>();
  readonly #closed = new AbortController();
  /** Aborts when there is a reason for another pass. */
  #touched = new AbortController();
  #isWorking = false;
  #isReading = false;

  /** The newest position read, and the one from which the next pass reads: undefined before the first. */
  #position = 0;
  #settled: number | undefined;
  /** The messages of the last pass, by id. */
  #known: ReadonlyMap<string, KnownItem> = new Map();
  #end: number | undefined;
  #ended: readonly string[] = [];
  #activity: TimelineActivity = {};
  /** Whether a message has no final state. */
  #isWaiting = false;
  #draft: FeedDraft | undefined;
  #isRequesting = false;

  readonly #pending = new PendingFrames();
  #flushedAt = 0;
  #isFlushing = false;

  constructor(deps: LaneViewDeps, session: FeedSession) {
    this.#deps = deps;
    this.#session = session;
    this.#of = session.laneKey + session.restoreMark;
    void this.#listen();
  }

  get size(): number {
    return this.#readers.size;
  }

  add(reader: FeedReader): void {
    this.#readers.add(reader);
  }

  remove(reader: FeedReader): void {
    this.#readers.delete(reader);
  }

  close(): void {
    this.#closed.abort();
    for (const reader of this.#readers) reader.finish();
  }

  /** Asks for another pass; the first call begins the first one. */
  readonly touch = (): void => {
    this.#touched.abort();
    if (!this.#isWorking) void this.#work();
  };

  async #listen(): Promise<void> {
    const { feed } = this.#deps;
    for await (const event of feed.subscribe(this.#session.laneKey, this.#closed.signal)) {
      if (!('lagged' in event)) this.#hear(event);
      else {
        this.touch();
        void this.#requestText();
      }
    }
  }

  #hear(event: FeedEvent): void {
    const isEnd = event.kind === 'run' && event.state === 'ended';
    if (changesLane(event) || event.kind === 'delivery' || (event.kind === 'tool' && this.#isReading))
      this.touch();
    if (event.kind === 'changed' || isEnd) return;
    if ('runId' in event && this.#ended.includes(event.runId)) return;
    if (event.kind === 'text' && !this.#write(event)) return;
    this.#tell({ type: 'event', event });
  }

  /** Adds a piece to the draft. Returns false if something before it was lost, and asks for it. */
  #write({ runId, of, ...piece }: Extract<FeedEvent, { kind: 'text' }>): boolean {
    const draft =
      this.#draft?.runId === runId ? this.#draft : { runId, assistant: '', reasoning: '', chat: '' };
    const text = withPiece(draft[of], piece);
    if (text === undefined) void this.#requestText();
    else this.#draft = { ...draft, [of]: text };
    return text !== undefined;
  }

  /** Asks for the text of the open run, which may be long: once for everything that is missed in a moment. */
  async #requestText(): Promise<void> {
    if (this.#isRequesting) return;
    this.#isRequesting = true;
    await this.#deps.clock.wait(textRequestMs, this.#closed.signal);
    this.#isRequesting = false;
    if (!this.#closed.signal.aborted) this.#deps.feed.requestText(this.#session.laneKey);
  }

  async #work(): Promise<void> {
    const { clock, log } = this.#deps;
    const { signal } = this.#closed;
    this.#isWorking = true;
    while (!signal.aborted) {
      this.#touched = new AbortController();
      const startedAt = clock.now();
      try {
        await this.#pass();
        await clock.wait(this.#lookMs(), AbortSignal.any([signal, this.#touched.signal]));
        await clock.wait(Math.max(0, passMs - (clock.now() - startedAt)), signal);
      } catch (error) {
        log.debug({ error }, 'feed.not-read');
        await clock.wait(retryMs, signal);
      }
    }
  }

  #lookMs(): number {
    return this.#activity.run === undefined && !this.#isWaiting ? idleLookMs : busyLookMs;
  }

  async #pass(): Promise<void> {
    this.#isReading = true;
    try {
      const pass = await this.#read();
      // From here on nothing waits, so that each reader gets everything in one order.
      this.#apply(pass);
    } finally {
      this.#isReading = false;
    }
  }

  /** Reads ends after the activity and messages after the ends: so no ended run is shown as active or unanswered. */
  async #read(): Promise<Pass> {
    const { store } = this.#deps;
    const { laneKey } = this.#session;
    const hungry = [...this.#readers].filter(({ isHungry }) => isHungry);
    const activity = await store.read(readActivity, { laneKey });
    if (this.#end === undefined) {
      const last = await store.read(readLastEnd, { laneKey });
      this.#end = last?.number ?? 0;
      this.#ended = last ? [last.runId] : [];
    }
    const ends = await this.#readEnds(this.#end);
    const items = await this.#readNews();
    const runs = await this.#readRuns();
    const end = ends.at(-1)?.number ?? this.#end;
    const missed = new Map<number | undefined, Promise<MissedItems>>();
    const missedAfter = (position: number | undefined) => {
      const reading = missed.get(position) ?? this.#readMissed(position);
      missed.set(position, reading);
      return reading;
    };
    const joining: JoiningReader[] = [];
    for (const reader of hungry) joining.push(await this.#readJoining(reader, end, missedAfter));
    return { items, ends, activity, runs, joining };
  }

  #readEnds(after: number): Promise<readonly EndedRun[]> {
    return this.#deps.store.read(readEndedRuns, { laneKey: this.#session.laneKey, after, limit: maxEnds });
  }

  /** Reads what may have changed since the last pass, and what is new. */
  async #readNews(): Promise<readonly TimelineItem[]> {
    if (this.#settled === undefined) return this.#readItems({ limit: windowSize });
    const items: TimelineItem[] = [];
    for (let after = this.#settled; ; ) {
      const page = await this.#readItems({ after, limit: maxBehind });
      items.push(...page);
      if (page.length < maxBehind) return items;
      after = page.at(-1)?.position ?? after;
    }
  }

  #readItems(options: { readonly after?: number; readonly limit: number }) {
    return readItems(this.#deps, { laneKey: this.#session.laneKey, ...options });
  }

  async #readMissed(position: number | undefined): Promise<MissedItems> {
    if (position !== undefined) {
      const items = await this.#readItems({ after: position, limit: maxBehind });
      if (items.length < maxBehind) return { after: position, items };
    }
    const limit = position === undefined ? windowSize : maxBehind;
    const items = await this.#readItems({ limit });
    const [first] = items;
    return { after: first === undefined || items.length < limit ? 0 : Math.ceil(first.position) - 1, items };
  }

  async #readRuns(): Promise<Pass['runs']> {
    const runs = new Map<string, RunPlace | undefined>();
    for (const { filter } of this.#readers)
      if (filter.run !== undefined && !runs.has(filter.run))
        runs.set(filter.run, await this.#deps.store.read(findRunPlace, { runId: filter.run }));
    return runs;
  }

  /** Reads what a reader has missed. Ends come first, however many there are. */
  async #readJoining(
    reader: FeedReader,
    end: number,
    missedAfter: (position: number | undefined) => Promise<MissedItems>,
  ): Promise<JoiningReader> {
    const { place, filter } = reader;
    if (filter.run !== undefined) return { reader, ends: [], missed: { after: 0, items: [] } };
    const ends =
      place && reader.wantsEnds
        ? (await this.#readEnds(place.end)).filter(({ number }) => number <= end)
        : [];
    if (ends.length === maxEnds) return { reader, ends };
    // A place may be made up.
    return { reader, ends, missed: await missedAfter(place && Math.min(place.position, this.#position)) };
  }

  #apply({ items, ends, activity, runs, joining }: Pass): void {
    const isFirst = this.#settled === undefined;
    const changed = this.#keep(items);
    const place = { position: this.#settled ?? 0, end: this.#end ?? 0 };
    if (changed.length > 0 && !isFirst)
      this.#tell({ type: 'items', id: this.#idOf(place), of: this.#of, items: changed }, place);
    for (const ended of ends) this.#tellEnd(ended);
    if (this.#draft && this.#ended.includes(this.#draft.runId)) this.#draft = undefined;
    const { run, ...rest } = activity;
    const current = run && this.#ended.includes(run.runId) ? rest : activity;
    if (!isFirst && JSON.stringify(current) !== JSON.stringify(this.#activity))
      this.#tell({ type: 'standing', ...current });
    this.#activity = current;
    this.#flush();
    for (const reader of this.#readers) reader.target = runs.get(reader.filter.run ?? '')?.runId;
    for (const one of joining) this.#join(one);
    for (const reader of this.#readers) this.#finish(reader, runs.get(reader.filter.run ?? ''));
    if (ends.length === maxEnds) this.touch();
  }

  /** Remembers what was read, and returns what has changed. */
  #keep(items: readonly TimelineItem[]): readonly TimelineItem[] {
    const known = new Map(
      items.map((item) => [item.messageId, { position: item.position, json: JSON.stringify(item) }]),
    );
    const changed = items.filter(
      ({ messageId }) => known.get(messageId)?.json !== this.#known.get(messageId)?.json,
    );
    const isAnswer = ({ author, messageId }: TimelineItem) =>
      author.kind === 'agent' && !this.#known.has(messageId);
    if (this.#settled !== undefined && changed.some(isAnswer)) {
      // As readers do: what was being written is stored now, unless the next message has begun.
      this.#draft = undefined;
      void this.#requestText();
    }
    const from = this.#settled ?? 0;
    const isGone = [...this.#known].some(([id, { position }]) => position > from && !known.has(id));
    if (isGone) for (const reader of this.#readers) reader.fallBehind();
    this.#position = Math.max(this.#position, Math.floor(items.at(-1)?.position ?? 0));
    const open = items.filter(({ author, state }) => author.kind === 'person' && openStates.has(state));
    const settled = Math.min(this.#position - windowSize, ...open.map(({ position }) => position - 1));
    this.#settled = Math.max(0, Math.floor(settled));
    this.#isWaiting = open.length > 0;
    this.#known = known;
    return changed;
  }

  #tellEnd({ runId, number, reason }: EndedRun): void {
    this.#end = number;
    this.#ended = [...this.#ended, runId].slice(-maxEnded);
    const place = { position: this.#settled ?? 0, end: number };
    this.#tell({ type: 'event', id: this.#idOf(place), event: endOf(runId, reason) }, place);
  }

  /** Gives a reader what it has missed, and from then on what happens. */
  #join({ reader, ends, missed }: JoiningReader): void {
    const position = reader.place?.position ?? 0;
    const batch = ends.map(({ runId, number, reason }) => {
      const place = { position, end: number };
      return encode({ type: 'event', id: this.#idOf(place), event: endOf(runId, reason) }, place);
    });
    if (missed) batch.push(this.#snapshotFor(reader, missed));
    reader.catchUp(batch, missed !== undefined);
  }

  #snapshotFor({ filter, target }: FeedReader, { after, items }: MissedItems): EncodedFrame {
    const place = { position: this.#settled ?? 0, end: this.#end ?? 0 };
    const { run } = this.#activity;
    const isWanted = (kind: string) => filter.kinds?.has(kind) ?? true;
    const isWhole = filter.run === undefined;
    const activity = isWhole ? this.#activity : run && run.runId === target ? { run } : {};
    const draft = isWanted('text') && (isWhole || this.#draft?.runId === target) ? this.#draft : undefined;
    const frame: FeedFrame = {
      ...{ type: 'snapshot', id: this.#idOf(place), of: this.#of, after },
      items: isWanted('items') ? items : [],
      ...activity,
      ...(draft && { draft }),
    };
    return encode(frame, place);
  }

  /** Ends the feed of a run that has ended, with its answer, for a reader that is up to date. */
  #finish(reader: FeedReader, run: RunPlace | undefined): void {
    const { filter } = reader;
    if (filter.run === undefined || run?.end === undefined || !reader.isLive) return;
    const { reason, answer } = run.end;
    const place = { position: this.#settled ?? 0, end: this.#end ?? 0 };
    const id = formatPlace(this.#session, place, filter.run);
    const last = encode({ type: 'event', id, event: endOf(run.runId, reason) }, place);
    const told = answer === undefined ? undefined : readableText(answer, ['chat']);
    const event: FeedEvent = { kind: 'answer', runId: run.runId, text: told ?? '' };
    reader.catchUp(told === undefined ? [last] : [encode({ type: 'event', event }), last], true);
    reader.finish();
  }

  #idOf(place: FeedPlace): string {
    return formatPlace(this.#session, place);
  }

  /** Passes a frame on to the readers, a moment later if many frames come. */
  #tell(frame: FeedFrame, place?: FeedPlace): void {
    this.#pending.add(frame, place);
    if (!this.#isFlushing) void this.#flushSoon();
  }

  /** Many readers get fewer, larger pieces, since writing to each takes time that runs need. */
  async #flushSoon(): Promise<void> {
    const { clock } = this.#deps;
    this.#isFlushing = true;
    const pauseMs = Math.min(maxPauseMs, 20 + this.#readers.size);
    await clock.wait(Math.max(0, this.#flushedAt + pauseMs - clock.now()), this.#closed.signal);
    this.#isFlushing = false;
    this.#flush();
  }

  #flush(): void {
    this.#flushedAt = this.#deps.clock.now();
    const all = this.#pending.take();
    const batches = new Map<string, FeedBatch>();
    for (const reader of this.#readers) {
      if (!reader.isLive) continue;
      const { key } = reader;
      const batch = batches.get(key) ?? all.filter(({ frame }) => reader.wants(frame));
      batches.set(key, batch);
      reader.offer(batch);
    }
  }
}

function endOf(runId: string, reason: string): FeedEvent {
  return { kind: 'run', runId, state: 'ended', ...(reason !== 'natural' && { reason }) };
}
