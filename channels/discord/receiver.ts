/**
 * From the gateway to the intake: an event is mapped as it comes in, waits while the history of its conversation is
 * read, and is passed on in order. The socket's handler does nothing else.
 */
import { join } from 'node:path';
import { slowRetryMs } from '#channel-kit/backoff.ts';
import { OversizedJson } from '#channel-kit/read-json.ts';
import type { ChannelDeps, InboundBatch, Intake } from '#contracts/channel.ts';
import type { ConversationId } from '#contracts/ids.ts';
import type { DiscordApi } from './api.ts';
import type { DiscordConfig } from './config.ts';
import { Contacts } from './contacts.ts';
import { Directory } from './directory.ts';
import { reasonOf } from './failures.ts';
import { Gateway, type IdentifyPace } from './gateway.ts';
import { History } from './history.ts';
import { type Bot, formatCursor, laterSnowflake, readCursor, snowflakeAt, timeOf } from './ids.ts';
import type { Dispatch } from './inbound.ts';
import { IntakeQueue } from './intake-queue.ts';
import type { Interactions } from './interactions.ts';
import { interactionSchema, readySchema, type User, userSchema } from './payload-schema.ts';
import { fieldsOf, idIn } from './raw-fields.ts';
import { Reader } from './reader.ts';
import { RecentAuthors } from './recent.ts';

export type ReceiverDeps = Pick<ChannelDeps, 'clock' | 'log' | 'dataDir'> & {
  readonly api: DiscordApi;
  readonly bot: Bot;
  readonly config: DiscordConfig;
  readonly interactions: Interactions;
  /** Outlives the receiver. */
  readonly pace: IdentifyPace;
};

/** Across many conversations, ids may arrive out of order by this much, ms. */
const floorSlackMs = 60_000;
/** Unavailable guilds hold up the reading of direct channels for at most this long, ms. */
const guildPatienceMs = 10_000;
/** After this time, ms, a guild that the gateway hasn't reported is requested. */
const guildAskMs = 30_000;

export class Receiver {
  readonly #deps: ReceiverDeps;
  readonly #intake: Intake;
  readonly #directory: Directory;
  readonly #recent: RecentAuthors;
  readonly #reader: Reader;
  readonly #history: History;
  readonly #queue: IntakeQueue;
  readonly #gateway: Gateway;
  readonly #anchors: Map<ConversationId, string>;
  /** Unavailable guilds: it isn't known what was missed there. */
  readonly #awaitedGuilds = new Set<string>();
  /** The unavailable guilds that were read over REST. */
  readonly #readGuilds = new Set<string>();
  readonly #stopped = new AbortController();
  /** Aborted when the gateway session ends. */
  #change = new AbortController();
  #floor: string;
  /** Every conversation of this session is live or being read. */
  #isPlanned = false;

  private constructor(deps: ReceiverDeps, intake: Intake, contacts: Contacts) {
    const { api, bot, clock, config, interactions, log, pace } = deps;
    this.#deps = deps;
    this.#intake = intake;
    this.#anchors = new Map(intake.anchors);
    this.#floor = readCursor(bot, intake.cursor) ?? contacts.since;
    const directory = new Directory(bot);
    const recent = new RecentAuthors(bot);
    this.#directory = directory;
    this.#recent = recent;
    this.#reader = new Reader({ bot, clock, interactions, directory, recent });
    this.#queue = new IntakeQueue({
      ...{ clock, log },
      accept: (batch) => intake.accept(batch),
      cursorFor: (newest) => this.#cursorFor(newest),
      onStored: (batch) => this.#stored(batch),
      onTakenOver: () => void this.#stopAll(),
    });
    this.#history = new History({
      ...{ api, clock, log, directory, contacts },
      maxAgeMs: config.backfillHours * 3_600_000,
      anchors: this.#anchors,
      floor: () => this.#floor,
      store: (entries) => this.#queue.push(entries),
      entriesOf: (message, place) => this.#reader.readHistoric(message, place),
      gap: (gap) => intake.gap(gap),
      onOverflow: () => this.#giveUp(),
    });
    this.#gateway = new Gateway({
      ...{ api, clock, log, pace },
      token: config.token,
      onDispatch: (dispatch) => this.#receive(dispatch),
      onSessionLost: () => this.#sessionChanged(),
      onTrouble: (problem) => intake.trouble(problem),
    });
  }

  /**
   * Connects; resolves when live events are being received, or once the intake knows why they aren't yet. Once aborted,
   * it waits for nothing more and only needs to be stopped.
   */
  static async start(deps: ReceiverDeps, intake: Intake, signal: AbortSignal): Promise<Receiver> {
    const path = join(deps.dataDir, `contacts-${deps.bot.id}`);
    const contacts = await Contacts.open(path, { now: snowflakeAt(deps.clock.now()), log: deps.log });
    const receiver = new Receiver(deps, intake, contacts);
    signal.addEventListener('abort', () => receiver.#stopAll(), { once: true });
    if (!signal.aborted) await receiver.#gateway.connect();
    return receiver;
  }

  /** Resolves when nothing more will be handed to the intake. */
  async stop(): Promise<void> {
    this.#stopAll();
    await Promise.all([this.#gateway.close(), this.#queue.stop()]);
  }

  #stopAll(): void {
    this.#stopped.abort();
    this.#change.abort();
    this.#history.stop();
    void this.#queue.stop();
    void this.#gateway.close();
  }

  /** Stops receiving; once started again, the channel reads what it missed from the history. */
  #giveUp(): void {
    if (this.#stopped.signal.aborted) return;
    this.#stopAll();
    const detail = 'too many events are waiting to be stored; they will be read from Discord’s history later';
    this.#intake.trouble({ kind: 'unreachable', code: 'not-stored', detail, isOver: true });
  }

  #receive(dispatch: Dispatch): void {
    if (this.#stopped.signal.aborted) return;
    try {
      this.#learn(dispatch);
      this.#handOn(dispatch);
    } catch (error) {
      // Nothing that Discord sends makes reading throw; whatever this is, the socket must keep running.
      this.#deps.log.error({ event: dispatch.t, error: String(error) }, 'discord.dispatch-failed');
    }
  }

  /** Updates the directory before the event reaches the agent. */
  #learn(dispatch: Dispatch): void {
    const { t, d } = dispatch;
    if (d instanceof OversizedJson) {
      const guild = [...this.#awaitedGuilds].find((id) => d.text.includes(`"id":"${id}"`));
      const { signal } = this.#change;
      if (t === 'GUILD_CREATE') void (guild ? this.#askForLarge(guild, signal) : this.#askForJoined(signal));
      return;
    }
    if (t === 'CHANNEL_DELETE' || t === 'GUILD_DELETE') this.#removed(dispatch);
    this.#directory.apply(t, d);
    switch (t) {
      case 'READY':
        this.#ready(d);
        break;
      case 'USER_UPDATE':
        this.#named(userSchema.parse(d));
        break;
      case 'GUILD_CREATE':
        this.#guildArrived(d);
        break;
      case 'CHANNEL_CREATE':
        // A direct channel is recorded with its first message.
        if (this.#directory.placeOf(idIn(d))?.chat.kind === 'group') this.#history.begin(idIn(d));
        break;
      case 'THREAD_CREATE':
        if (fieldsOf(d).newly_created === true) this.#history.begin(idIn(d));
        break;
      case 'MESSAGE_CREATE':
        this.#noteMessage(d);
        break;
      case 'INTERACTION_CREATE':
        this.#noteInteraction(d);
        break;
      default:
    }
  }

  #ready(data: unknown): void {
    const { session_id: session, guilds, user } = readySchema.parse(data);
    this.#named(user);
    this.#reader.sessionBegan(session);
    // Histories read since the last session ended may lack later messages.
    this.#sessionChanged();
    for (const { id } of guilds) this.#awaitedGuilds.add(id);
    if (this.#awaitedGuilds.size === 0) this.#planOthers();
    else void this.#planOthersLater(this.#change.signal);
    void this.#askForGuilds(this.#change.signal);
  }

  #named({ id, username }: User): void {
    const { bot } = this.#deps;
    if (id !== bot.id || username === bot.name) return;
    bot.name = username;
    this.#intake.renamed(username);
  }

  async #planOthersLater(signal: AbortSignal): Promise<void> {
    await this.#deps.clock.wait(guildPatienceMs, signal);
    if (!signal.aborted) this.#planOthers();
  }

  /**
   * Requests guilds that the gateway doesn't report, because nothing else would read their channels without an anchor.
   * They still count as unavailable: the gateway may not report messages sent there in the meantime, so a guild is read
   * once more when it arrives.
   */
  async #askForGuilds(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const isUnread = (guildId: string) => this.#awaitedGuilds.has(guildId) && !this.#readGuilds.has(guildId);
    for (let attempts = 0; [...this.#awaitedGuilds].some(isUnread); attempts += 1) {
      await clock.wait(attempts === 0 ? guildAskMs : slowRetryMs(attempts), signal);
      for (const id of [...this.#awaitedGuilds].filter(isUnread)) {
        const guild = await this.#askFor(id, signal);
        if (signal.aborted) return;
        if (guild === undefined || !isUnread(id)) continue;
        this.#readGuilds.add(id);
        this.#directory.apply('GUILD_CREATE', guild);
        this.#history.planGuild(id);
      }
    }
  }

  /** Requests the parts of a guild separately, because the gateway's report of it is too large to be parsed. */
  async #askForLarge(id: string, signal: AbortSignal): Promise<void> {
    this.#awaitedGuilds.add(id);
    for (let attempts = 1; this.#awaitedGuilds.has(id) && !signal.aborted; attempts += 1) {
      const guild = await this.#askFor(id, signal);
      if (signal.aborted) return;
      if (guild === undefined) await this.#deps.clock.wait(slowRetryMs(attempts), signal);
      else if (this.#awaitedGuilds.has(id)) {
        this.#directory.apply('GUILD_CREATE', guild);
        this.#guildArrived(guild);
      }
    }
  }

  /** Looks for the guild that the bot has just joined, because the report of it is too large to be parsed. */
  async #askForJoined(signal: AbortSignal): Promise<void> {
    const { api, clock, log } = this.#deps;
    for (let attempts = 1; !signal.aborted; attempts += 1) {
      try {
        for (const { id } of await api.guilds(signal))
          if (!this.#directory.hasGuild(id) && !this.#awaitedGuilds.has(id))
            void this.#askForLarge(id, signal);
        return;
      } catch (error) {
        log.info({ reason: reasonOf(error) }, 'discord.guilds-not-read');
        await clock.wait(slowRetryMs(attempts), signal);
      }
    }
  }

  /** Returns the guild as the gateway would report it; undefined if it can't be read now. */
  async #askFor(id: string, signal: AbortSignal): Promise<unknown> {
    const { api, bot, log } = this.#deps;
    try {
      return await api.guild(id, bot.id, signal);
    } catch (error) {
      const reason = reasonOf(error);
      log.info({ guildId: id, reason }, 'discord.guild-not-read');
      return undefined;
    }
  }

  #guildArrived(guild: unknown): void {
    const guildId = idIn(guild);
    this.#readGuilds.delete(guildId);
    // Histories read while it was unavailable may lack messages sent there since.
    if (this.#awaitedGuilds.delete(guildId)) this.#history.markUnreported(this.#channelsOf(guildId));
    this.#history.planGuild(guildId);
    if (this.#awaitedGuilds.size === 0) this.#planOthers();
    void this.#queue.push(this.#reader.readJoining(guild));
  }

  #planOthers(): void {
    if (this.#isPlanned || this.#stopped.signal.aborted) return;
    this.#isPlanned = true;
    this.#history.planOthers();
  }

  #sessionChanged(): void {
    this.#change.abort();
    this.#change = new AbortController();
    this.#isPlanned = false;
    this.#awaitedGuilds.clear();
    this.#readGuilds.clear();
    this.#history.sessionChanged();
  }

  #noteMessage(data: unknown): void {
    this.#recent.note(data);
    const channelId = idIn(data, 'channel_id');
    // A message with a member is from a guild, even if it doesn't name that.
    if (fieldsOf(data).guild_id || fieldsOf(data).member) {
      this.#directory.noteMessage(channelId, idIn(data));
      return;
    }
    const author = userSchema.safeParse(fieldsOf(data).author);
    this.#directory.learnDirect(channelId, author.success ? author.data : undefined);
  }

  #noteInteraction(data: unknown): void {
    const parsed = interactionSchema.safeParse(data);
    if (!parsed.success) return;
    const { channel_id: channelId = '', guild_id: guildId, channel, user } = parsed.data;
    if (guildId === undefined) this.#directory.learnDirect(channelId, user);
    else if (this.#directory.placeOf(channelId) === undefined) this.#directory.learnChannel(channel, guildId);
    this.#deps.interactions.receive(parsed.data);
  }

  /** A guild marked as unavailable still has the bot; one deleted without that mark has removed it. */
  #removed({ t, d, s }: Dispatch): void {
    const isGuild = t === 'GUILD_DELETE';
    const id = idIn(d);
    const guildId = isGuild ? id : idIn(d, 'guild_id');
    this.#awaitedGuilds.delete(isGuild ? id : '');
    if (isGuild && fieldsOf(d).unavailable === true) {
      this.#awaitedGuilds.add(id);
      this.#history.markUnreported(this.#channelsOf(id));
      return;
    }
    const known = [...this.#anchors.keys()].map((anchor) => anchor.split('/')[0] ?? '');
    const gone = [...new Set(known)].filter((channel) =>
      isGuild ? this.#directory.placeOf(channel)?.guildId === id : channel === id,
    );
    void this.#queue.push(this.#reader.readRemoval(gone, guildId, s));
    if (isGuild) this.#directory.forgetGuild(id);
  }

  #channelsOf(guildId: string): readonly string[] {
    return this.#directory.placesOf(guildId).map(({ id }) => id);
  }

  #handOn(dispatch: Dispatch): void {
    const reading = this.#reader.read(dispatch);
    switch (reading.kind) {
      case 'nothing':
        return;
      case 'own':
      case 'events': {
        const entries = this.#reader.entriesOf(reading);
        this.#history.hand(reading.place.id, { entries: () => entries });
        return;
      }
      case 'unplaced':
        // The conversation or its other side isn't known, so Discord is asked first.
        this.#history.stale(reading.channelId);
        this.#history.hand(reading.channelId, {
          needsPeer: true,
          entries: () => this.#reader.readAgain(dispatch),
        });
        return;
      case 'unreadable':
        this.#deps.log.warn({ event: dispatch.t, problem: reading.row.problem }, 'discord.event-not-read');
        void this.#queue.push(this.#reader.entriesOf(reading));
        return;
      default:
        reading satisfies never;
    }
  }

  /** The cursor only moves while nothing is known to be missing, because missing messages are read from there on. */
  #cursorFor(newest: string | undefined): string | undefined {
    const isComplete = this.#isPlanned && this.#awaitedGuilds.size === 0 && this.#history.isComplete;
    if (newest === undefined || !isComplete) return undefined;
    return formatCursor(
      this.#deps.bot,
      laterSnowflake(this.#floor, snowflakeAt(timeOf(newest) - floorSlackMs)),
    );
  }

  #stored({ anchors, cursor }: InboundBatch): void {
    for (const [conversation, anchor] of anchors ?? [])
      this.#anchors.set(conversation, laterSnowflake(this.#anchors.get(conversation) ?? '0', anchor));
    this.#floor = readCursor(this.#deps.bot, cursor) ?? this.#floor;
  }
}
