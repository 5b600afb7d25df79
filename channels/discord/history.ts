/**
 * Reads missed messages. In each gateway session a conversation is stale until its history has been read from its
 * anchor on; then it is live. While it is read, its live events are buffered, to follow the missed ones. A lost
 * session makes every conversation stale again.
 */
import { backoffMs } from '#channel-kit/backoff.ts';
import { type OversizedJson, oversizedIn } from '#channel-kit/read-json.ts';
import { retryAfterMs } from '#channel-kit/remote-number.ts';
import type { ChannelDeps, ChannelGap, GapCode } from '#contracts/channel.ts';
import { type ConversationId, conversationId } from '#contracts/ids.ts';
import type { DiscordApi } from './api.ts';
import type { Contacts } from './contacts.ts';
import type { ChannelLocation, Directory } from './directory.ts';
import { isBlockedUpstream, type Refusal, readRefusal, reasonOf } from './failures.ts';
import { isGiven, isLater, isSnowflake, laterSnowflake, snowflakeAt, timeOf } from './ids.ts';
import type { Entry } from './intake-queue.ts';
import { latestIdIn, snowflakeOf } from './raw-fields.ts';

export type BufferedEvents = {
  /** Called when it is their turn. */
  readonly entries: () => readonly Entry[];
  /** The entries can only be made once the other side of the direct channel is known. */
  readonly needsPeer?: boolean;
};

export type HistoryDeps = Pick<ChannelDeps, 'clock' | 'log'> & {
  readonly api: Pick<DiscordApi, 'messages' | 'channel' | 'answers'>;
  readonly directory: Directory;
  readonly contacts: Contacts;
  readonly maxAgeMs: number;
  /** Moves as batches are stored. */
  readonly anchors: ReadonlyMap<ConversationId, string>;
  /** Returns the id before which nothing was missed anywhere; conversations without an anchor are read from there. */
  floor(): string;
  /** Hands entries to the intake; resolves when the last of them is stored. */
  store(entries: readonly Entry[]): Promise<void>;
  /** Turns a message of the history into entries. */
  entriesOf(message: unknown, place: ChannelLocation): readonly Entry[];
  gap(gap: ChannelGap): void;
  /** Called when too many live events wait to be stored: later ones can only be read from the history. */
  onOverflow(): void;
};

/** How many live events may wait to be stored; any more are read from the history once the store accepts them. */
const maxPending = 10_000;

type HistoryFill = {
  readonly held: BufferedEvents[];
  readonly start: () => void;
  isStarted: boolean;
  /** The gateway reports nothing from the channel now: even when read to its end, it isn't live. */
  isUntold: boolean;
  /** How often its guild went away and came back; a read that started before the last time lacks messages. */
  changes: number;
};

const pageSize = 100;
/** How many reads run at once; one that live events wait for starts immediately. */
const atATime = 2;
/** This many reads that wait to be retried don't count towards that; in an outage all of them would fail. */
const maxAside = 20;
const pauses = { firstMs: 1_000, longestMs: 30_000 };
/** How often a history may be turned away while Discord answers other calls: ten minutes, with these pauses. */
const maxRejected = 24;

export class History {
  readonly #deps: HistoryDeps;
  readonly #stopped = new AbortController();
  readonly #live = new Set<string>();
  readonly #filling = new Map<string, HistoryFill>();
  #working = 0;
  /** How many of these failed and wait for their next attempt. */
  #pausing = 0;
  /** How often the session changed; a conversation read before the last change has to be read again. */
  #changes = 0;
  /** Live events that were handed over and aren't stored yet. */
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
   * Call it when the gateway has lost its session and reports nothing, and when it has a new one. Both count: a history
   * read in between lacks the messages sent between the read and the new session.
   */
  sessionChanged(): void {
    this.#changes += 1;
    this.#live.clear();
  }

  /** Has the channel read before its next events are passed on. */
  stale(channelId: string): void {
    this.#live.delete(channelId);
  }

  /** Marks channels whose events aren't reported until their guild is planned again. */
  markUnreported(channelIds: readonly string[]): void {
    for (const id of channelIds) {
      this.#live.delete(id);
      const filling = this.#filling.get(id);
      if (filling !== undefined) filling.isUntold = true;
    }
  }

  /** Makes a channel live in which nothing can have been missed, such as a new one. */
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
   * Reads conversations that no guild has reported: direct channels, and threads that have been archived.
   */
  planOthers(): void {
    const anchored = [...this.#deps.anchors.keys()].map(channelOf);
    for (const id of new Set([...this.#deps.contacts.channels, ...anchored])) {
      if (!this.#live.has(id) && isSnowflake(id)) this.#fill(id);
    }
  }

  /** Passes live events on, or buffers them until the messages missed before them are stored. */
  hand(channelId: string, held: BufferedEvents): void {
    this.#pending += 1;
    if (this.#pending > maxPending) this.#deps.onOverflow();
    if (this.#live.has(channelId)) {
      void this.#store([held]);
      return;
    }
    const filling = this.#fill(channelId);
    filling.held.push(held);
    filling.start();
  }

  /** Reads the channel, and reads it again if its guild was away during the read. */
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
      if (this.#working - Math.min(this.#pausing, maxAside) >= atATime) return;
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

  /** Retries until the channel has been read, or until Discord says that it can't be. */
  async #readPatiently(channelId: string): Promise<void> {
    const { log } = this.#deps;
    let limit = pageSize;
    let turnedAway = 0;
    for (let attempts = 1; !this.#stopped.signal.aborted; attempts += 1) {
      try {
        await this.#read(channelId, limit);
        return;
      } catch (error) {
        const oversized = oversizedIn(error);
        if (oversized && limit === 1 && !(await this.#skip(channelId, oversized)))
          return this.#isTooLarge(channelId);
        if (oversized) limit = limit === 1 ? pageSize : limit / 10;
        const refusal = readRefusal(error);
        if (refusal && (await this.#isTurnedAwayAlone(refusal))) turnedAway += 1;
        const isFinal = refusal?.code !== undefined && [400, 403, 404].includes(refusal.status);
        if (refusal && (isFinal || turnedAway >= maxRejected)) return this.#cannotRead(channelId, refusal);
        const reason = reasonOf(error);
        log.info({ channelId, attempts, reason }, 'discord.history-delayed');
        const fallbackMs = backoffMs(attempts, pauses);
        await this.#pause(retryAfterMs(refusal?.retryAfterMs, { fallbackMs }));
      }
    }
  }

  /** Says whether only this history is turned away: a filter always would, and new messages there would wait for it. */
  async #isTurnedAwayAlone(refusal: Refusal): Promise<boolean> {
    return isBlockedUpstream(refusal) && (await this.#deps.api.answers(this.#stopped.signal));
  }

  /** Lets other channels be read in the meantime: one that can't be read now may never be. */
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
        this.#gap(place, { after, code: 'too-old', reason: 'the messages are too old to be fetched' });
        const anchor = { conversation: anchorOf(place), messageId: oldest };
        await store([{ events: [], anchor, isGap: true }]);
      }
      await store(recent.flatMap((message) => entriesOf(message, place)));
      isMore = page.length === limit;
      const next = laterSnowflake(snowflakeOf(sorted.at(-1)), recent.length === 0 && isMore ? oldest : after);
      if (isMore && !isLater(next, after)) {
        // The same page would come forever and hold up new messages.
        const reason = 'Discord keeps returning the same messages';
        return this.#gap(place, { after, code: 'history-refused', reason });
      }
      after = next;
    }
  }

  /** Returns the channel's location, from Discord if the gateway hasn't reported it. Undefined: not a conversation. */
  async #placeOf(channelId: string): Promise<ChannelLocation | undefined> {
    const { directory, contacts, api } = this.#deps;
    if (contacts.has(channelId)) directory.learnDirect(channelId);
    const known = directory.placeOf(channelId);
    if (known !== undefined) return known;
    directory.learnChannel(await api.channel(channelId, this.#stopped.signal));
    return directory.placeOf(channelId);
  }

  /** Asks for the other side of a direct channel. Without it, the events are recorded as unreadable. */
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

  /** Reports a gap if the bot may not read the history: Discord then returns an empty list instead of refusing. */
  #maybeClosed(place: ChannelLocation, after: string): void {
    const { canReadHistory } = this.#deps.directory.access(place.id);
    const reason = 'the bot may not read the message history there';
    if (!canReadHistory) this.#gap(place, { after, code: 'no-history', reason });
  }

  /** Reports a gap, unless the channel is gone or the bot can't see it: nobody could have addressed the bot there. */
  #cannotRead(channelId: string, { status, code, reason }: Refusal): void {
    const { directory, log } = this.#deps;
    log.info({ channelId, reason }, 'discord.history-refused');
    const place = directory.placeOf(channelId);
    const isGone = status === 404 && code !== undefined;
    if (isGone || place === undefined || !directory.access(channelId).canView) return;
    this.#gap(place, { after: this.#startOf(place), code: 'history-refused', reason });
  }

  /** Records a message that is too large to be read, so that the next read begins after it. False without its id. */
  async #skip(channelId: string, oversized: OversizedJson): Promise<boolean> {
    const { directory, clock, store, entriesOf } = this.#deps;
    const place = directory.placeOf(channelId);
    const messageId = latestIdIn(oversized);
    if (place === undefined || !isLater(messageId, this.#startOf(place))) return false;
    if (!isGiven(messageId, clock.now())) return false;
    const anchor = { conversation: anchorOf(place), messageId };
    await store(entriesOf(oversized, place).map((entry) => ({ ...entry, anchor })));
    return true;
  }

  /** Reports a gap. Live events move the anchor past the message. */
  #isTooLarge(channelId: string): void {
    const place = this.#deps.directory.placeOf(channelId);
    const reason = 'a message there is too large to read';
    if (place !== undefined)
      this.#gap(place, { after: this.#startOf(place), code: 'history-refused', reason });
  }

  #gap(place: ChannelLocation, { after, ...why }: MissedStretch): void {
    this.#deps.gap({ conversation: place.route.conversation, since: timeOf(after), ...why });
  }
}

type MissedStretch = { readonly after: string; readonly code: GapCode; readonly reason: string };

/** Returns the key of a place's anchor: a thread's key is its channel's, followed by its own id. */
export function anchorOf({
  route: { conversation, thread },
}: Pick<ChannelLocation, 'route'>): ConversationId {
  return thread === undefined ? conversation : conversationId(`${conversation}/${thread}`);
}

/** Returns the channel that an anchor belongs to. */
function channelOf(anchor: ConversationId): string {
  return anchor.split('/').at(-1) ?? anchor;
}
