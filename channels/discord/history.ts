/**
 * Reads what was missed. Every conversation is `stale` until, in this gateway session, its history was read
 * from its anchor on; then it is live. While it is read, its live events are buffered and follow the missed
 * ones. A lost session makes all of them stale again.
 */
import { backoffMs } from '#channel-kit/backoff.ts';
import { retryAfterMs } from '#channel-kit/remote-number.ts';
import type { ChannelDeps, ChannelGap, GapCode } from '#contracts/channel.ts';
import { type ConversationId, conversationId } from '#contracts/ids.ts';
import type { DiscordApi } from './api.ts';
import type { Contacts } from './contacts.ts';
import type { ChannelLocation, Directory } from './directory.ts';
import { isTurnedAway, type Refusal, readRefusal, reasonOf } from './failures.ts';
import { isLater, isSnowflake, laterOf, snowflakeAt, timeOf } from './ids.ts';
import type { Entry } from './intake-queue.ts';
import { snowflakeOf } from './raw-fields.ts';

export type BufferedEvents = {
  /** Called when it is their turn. */
  readonly entries: () => readonly Entry[];
  /** They can only be made when the other side of the direct channel is known. */
  readonly needsPeer?: boolean;
};

export type HistoryDeps = Pick<ChannelDeps, 'clock' | 'log'> & {
  readonly api: Pick<DiscordApi, 'messages' | 'channel' | 'answers'>;
  readonly directory: Directory;
  readonly contacts: Contacts;
  readonly maxAgeMs: number;
  /** Moves as batches are stored. */
  readonly anchors: ReadonlyMap<ConversationId, string>;
  /** Before this nothing was missed anywhere: where conversations without an anchor are read from. */
  floor(): string;
  /** Hands entries to the intake; resolves when the last of them is stored. */
  store(entries: readonly Entry[]): Promise<void>;
  /** A message of the history as entries. */
  entriesOf(message: unknown, place: ChannelLocation): readonly Entry[];
  gap(gap: ChannelGap): void;
  /** Live events have come for long without being stored: those that follow can only be read later. */
  onOverflow(): void;
};

/** Live events that wait to be stored, at most: beyond this they are read from the history once the store takes them. */
const mostPending = 10_000;

type HistoryFill = {
  readonly held: BufferedEvents[];
  readonly start: () => void;
  isStarted: boolean;
  /** The gateway tells nothing of the channel now: read to its end, it still isn't live. */
  isUntold: boolean;
  /** Times that its guild went away and came back: a reading that began before the last of them lacks messages. */
  changes: number;
};

const pageSize = 100;
/** Readings that nobody waits for; those with live events behind them go at once. */
const atATime = 2;
/** So many that failed are not counted among them; in an outage all would fail. */
const mostAside = 20;
const pauses = { firstMs: 1_000, longestMs: 30_000 };
/** So often a history may be turned away while Discord answers all else: for ten minutes, with these pauses. */
const mostTurnedAway = 24;

export class History {
  readonly #deps: HistoryDeps;
  readonly #stopped = new AbortController();
  readonly #live = new Set<string>();
  readonly #filling = new Map<string, HistoryFill>();
  #working = 0;
  /** Those of them that failed and wait for their next attempt. */
  #pausing = 0;
  /** Conversations read before the last one don't count. */
  #changes = 0;
  /** Live events that were handed over and are not stored. */
  #pending = 0;

  constructor(deps: HistoryDeps) {
    this.#deps = deps;
  }

  /** True when nothing is known to be missing anywhere. */
  get isComplete(): boolean {
    return this.#filling.size === 0;
  }

  stop(): void {
    this.#stopped.abort();
    this.#filling.clear();
  }

  /**
   * The gateway has lost its session and reports nothing, or has a new one. Both count: a history read in
   * between lacks the messages sent between the reading and the new session.
   */
  sessionChanged(): void {
    this.#changes += 1;
    this.#live.clear();
  }

  /** The channel is read before its next events are passed on. */
  stale(channelId: string): void {
    this.#live.delete(channelId);
  }

  /** Events of these channels are not told, until their guild is planned again. */
  untold(channelIds: readonly string[]): void {
    for (const id of channelIds) {
      this.#live.delete(id);
      const filling = this.#filling.get(id);
      if (filling !== undefined) filling.isUntold = true;
    }
  }

  /** A channel that has just been made: nothing can have been missed there. */
  begin(channelId: string): void {
    const filling = this.#filling.get(channelId);
    if (filling === undefined) this.#live.add(channelId);
    else filling.isUntold = false;
  }

  /** Reads the conversations of a guild that have something new. */
  planGuild(guildId: string): void {
    const { directory } = this.#deps;
    for (const place of directory.placesOf(guildId)) {
      const after = this.#startOf(place);
      const lastMessageId = directory.lastMessageId(place.id);
      if (this.#live.has(place.id)) continue;
      if (lastMessageId === undefined || !isLater(lastMessageId, after)) this.begin(place.id);
      else this.#fillAgain(place.id);
    }
  }

  /**
   * Reads conversations that no guild has reported: direct channels, and threads that were archived meanwhile.
   */
  planOthers(): void {
    const anchored = [...this.#deps.anchors.keys()].map(channelOf);
    for (const id of new Set([...this.#deps.contacts.channels, ...anchored])) {
      if (!this.#live.has(id) && isSnowflake(id)) this.#fill(id);
    }
  }

  /** Passes live events on, or holds them until what was missed before them is stored. */
  hand(channelId: string, held: BufferedEvents): void {
    this.#pending += 1;
    if (this.#pending > mostPending) this.#deps.onOverflow();
    if (this.#live.has(channelId)) {
      void this.#store([held]);
      return;
    }
    const filling = this.#fill(channelId);
    filling.held.push(held);
    filling.start();
  }

  /** Reads the channel; anew if its guild was away while it was read. */
  #fillAgain(channelId: string): void {
    const filling = this.#fill(channelId);
    if (!filling.isUntold) return;
    filling.isUntold = false;
    filling.changes += 1;
  }

  #fill(channelId: string): HistoryFill {
    const known = this.#filling.get(channelId);
    if (known !== undefined) return known;
    const filling: HistoryFill = {
      held: [],
      isStarted: false,
      isUntold: false,
      changes: 0,
      start: () => {
        if (filling.isStarted || this.#stopped.signal.aborted) return;
        filling.isStarted = true;
        this.#working += 1;
        void this.#run(channelId, filling);
      },
    };
    this.#filling.set(channelId, filling);
    this.#pump();
    return filling;
  }

  #pump(): void {
    for (const filling of this.#filling.values()) {
      if (this.#working - Math.min(this.#pausing, mostAside) >= atATime) return;
      filling.start();
    }
  }

  async #run(channelId: string, filling: HistoryFill): Promise<void> {
    let changes = -1;
    while (changes !== this.#changes + filling.changes && !this.#stopped.signal.aborted) {
      changes = this.#changes + filling.changes;
      await this.#readPatiently(channelId);
      if (filling.held.some(({ needsPeer }) => needsPeer)) await this.#learnPeer(channelId);
    }
    this.#working -= 1;
    if (this.#stopped.signal.aborted) return;
    this.#filling.delete(channelId);
    if (!filling.isUntold) this.#live.add(channelId);
    void this.#store(filling.held);
    this.#pump();
  }

  async #store(held: readonly BufferedEvents[]): Promise<void> {
    await this.#deps.store(held.flatMap(({ entries }) => entries()));
    this.#pending -= held.length;
  }

  /** Until it was read, or until Discord says that it cannot be. */
  async #readPatiently(channelId: string): Promise<void> {
    const { log } = this.#deps;
    let limit = pageSize;
    let turnedAway = 0;
    for (let attempts = 1; !this.#stopped.signal.aborted; attempts += 1) {
      try {
        await this.#read(channelId, limit);
        return;
      } catch (error) {
        if (isTooLarge(error) && limit === 1) return this.#isTooLarge(channelId);
        if (isTooLarge(error)) limit = Math.floor(limit / 10);
        const refusal = readRefusal(error);
        if (refusal && (await this.#isTurnedAwayAlone(refusal))) turnedAway += 1;
        const isFinal = refusal?.code !== undefined && [400, 403, 404].includes(refusal.status);
        if (refusal && (isFinal || turnedAway >= mostTurnedAway)) return this.#cannotRead(channelId, refusal);
        const reason = reasonOf(error);
        log.info({ channelId, attempts, reason }, 'discord.history-delayed');
        const fallbackMs = backoffMs(attempts, pauses);
        await this.#pause(retryAfterMs(refusal?.retryAfterMs, { fallbackMs }));
      }
    }
  }

  /** A filter that refuses what is said there does so for ever, and all that is new there would wait behind it. */
  async #isTurnedAwayAlone(refusal: Refusal): Promise<boolean> {
    return isTurnedAway(refusal) && (await this.#deps.api.answers(this.#stopped.signal));
  }

  /** Others are read meanwhile: what cannot be read for now may never be. */
  async #pause(ms: number): Promise<void> {
    this.#pausing += 1;
    this.#pump();
    await this.#deps.clock.wait(ms, this.#stopped.signal);
    this.#pausing -= 1;
  }

  async #read(channelId: string, limit: number): Promise<void> {
    const { api, clock, contacts, maxAgeMs, store, entriesOf, directory } = this.#deps;
    const place = await this.#placeOf(channelId);
    if (place === undefined) return;
    let after = this.#startOf(place);
    if (place.chat.kind === 'dm') await contacts.add(channelId, after);
    const oldest = snowflakeAt(clock.now() - maxAgeMs);
    let isClipped = false;
    for (let isMore = true; isMore && !this.#stopped.signal.aborted; ) {
      const page = await api.messages(channelId, { after, limit }, this.#stopped.signal);
      if (page.length === 0 && isLater(directory.lastMessageId(channelId) ?? '0', after))
        this.#maybeClosed(place, after);
      const sorted = page.toSorted((a, b) => (isLater(snowflakeOf(a), snowflakeOf(b)) ? 1 : -1));
      const recent = sorted.filter((message) => isLater(snowflakeOf(message), oldest));
      if (recent.length < sorted.length && !isClipped) {
        isClipped = true;
        this.#gap(place, { after, code: 'too-old', reason: 'it is too long ago to be fetched' });
        const anchor = { conversation: anchorOf(place), messageId: oldest };
        await store([{ events: [], anchor, isGap: true }]);
      }
      await store(recent.flatMap((message) => entriesOf(message, place)));
      isMore = page.length === limit;
      const next = laterOf(snowflakeOf(sorted.at(-1)), recent.length === 0 && isMore ? oldest : after);
      if (isMore && !isLater(next, after)) {
        // The same page would come for ever, and hold up what is new.
        const reason = 'Discord gives the same part of it again and again';
        return this.#gap(place, { after, code: 'history-refused', reason });
      }
      after = next;
    }
  }

  /** Where an answer would go; asks Discord when the gateway has not told. Undefined: no conversation. */
  async #placeOf(channelId: string): Promise<ChannelLocation | undefined> {
    const { directory, contacts, api } = this.#deps;
    if (contacts.has(channelId)) directory.learnDirect(channelId);
    const known = directory.placeOf(channelId);
    if (known !== undefined) return known;
    directory.learnChannel(await api.channel(channelId, this.#stopped.signal));
    return directory.placeOf(channelId);
  }

  /** Without it the events are recorded as unreadable, which is what they then are. */
  async #learnPeer(channelId: string): Promise<void> {
    const { directory, api, log } = this.#deps;
    if (directory.placeOf(channelId)?.peer !== undefined) return;
    try {
      directory.learnChannel(await api.channel(channelId, this.#stopped.signal));
    } catch (error) {
      const reason = reasonOf(error);
      log.info({ channelId, reason }, 'discord.peer-not-found');
    }
  }

  #startOf(place: ChannelLocation): string {
    const { anchors, contacts, floor } = this.#deps;
    return anchors.get(anchorOf(place)) ?? contacts.after(place.id) ?? floor();
  }

  /** Without the right to read history Discord answers with an empty list, not with a refusal. */
  #maybeClosed(place: ChannelLocation, after: string): void {
    const { canReadHistory } = this.#deps.directory.access(place.id);
    const reason = 'the bot may not read the message history there';
    if (!canReadHistory) this.#gap(place, { after, code: 'no-history', reason });
  }

  /** A channel that is gone, or out of the bot's sight, has no gap: nobody could have called it there. */
  #cannotRead(channelId: string, { status, code, reason }: Refusal): void {
    const { directory, log } = this.#deps;
    log.info({ channelId, reason }, 'discord.history-refused');
    const place = directory.placeOf(channelId);
    const isGone = status === 404 && code !== undefined;
    if (isGone || place === undefined || !directory.access(channelId).canView) return;
    this.#gap(place, { after: this.#startOf(place), code: 'history-refused', reason });
  }

  /** Live events move the anchor past it. */
  #isTooLarge(channelId: string): void {
    const place = this.#deps.directory.placeOf(channelId);
    const reason = 'a message there is too large to be read';
    if (place !== undefined)
      this.#gap(place, { after: this.#startOf(place), code: 'history-refused', reason });
  }

  #gap(place: ChannelLocation, { after, ...why }: MissedStretch): void {
    this.#deps.gap({ conversation: place.route.conversation, since: timeOf(after), ...why });
  }
}

/** A reply of more than a hundred messages can hold; fewer are asked for then. */
function isTooLarge(error: unknown): boolean {
  return error instanceof RangeError && 'code' in error && error.code === 'ERR_REPLY_TOO_LARGE';
}

type MissedStretch = { readonly after: string; readonly code: GapCode; readonly reason: string };

/** Where the anchor of a place is kept: a thread's behind its channel's. */
export function anchorOf({
  route: { conversation, thread },
}: Pick<ChannelLocation, 'route'>): ConversationId {
  return thread === undefined ? conversation : conversationId(`${conversation}/${thread}`);
}

/** The channel that an anchor belongs to. */
function channelOf(anchor: ConversationId): string {
  return anchor.split('/').at(-1) ?? anchor;
}
