/**
 * From the gateway to the intake: an event is mapped where it comes in, waits while the history of its
 * conversation is read, and goes on in one order. The socket's handler does no more than that.
 */
import { join } from 'node:path';
import { slowRetryMs } from '#channel-kit/slow-retry.ts';
import { UnparsedJson } from '#channel-kit/unparsed-json.ts';
import type { ChannelDeps, InboundBatch, Intake } from '#contracts/channel.ts';
import type { ConversationId } from '#contracts/ids.ts';
import { noSections } from '#contracts/section.ts';
import type { DiscordApi } from './api.ts';
import type { DiscordConfig } from './config.ts';
import { Contacts } from './contacts.ts';
import { Directory } from './directory.ts';
import { reasonOf } from './failures.ts';
import { Gateway } from './gateway.ts';
import { History } from './history.ts';
import type { IdentifyPace } from './identify-pace.ts';
import { type Bot, formatCursor, laterOf, readCursor, snowflakeAt, timeOf } from './ids.ts';
import type { Dispatch } from './inbound.ts';
import { IntakeQueue } from './intake-queue.ts';
import type { Interactions } from './interactions.ts';
import { interactionSchema, readySchema, type User, userSchema } from './payload-schema.ts';
import { fieldsOf, idIn } from './raw-fields.ts';
import { Reader } from './reader.ts';
import { RecentAuthors } from './recent.ts';

export type ReceiverDeps = Pick<ChannelDeps, 'clock' | 'log' | 'dataDir' | 'sections'> & {
  readonly api: DiscordApi;
  readonly bot: Bot;
  readonly config: DiscordConfig;
  readonly interactions: Interactions;
  /** Outlives the receiver. */
  readonly pace: IdentifyPace;
};

/** Ids of one moment may come a little out of order over many conversations. */
const floorSlackMs = 60_000;
/** Guilds that are away do not hold up the reading of direct channels for longer. */
const guildPatienceMs = 10_000;
/** After this time a guild that the gateway has not reported is requested. */
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
  /** Guilds that are away: what was missed there is not known. */
  readonly #awaitedGuilds = new Set<string>();
  /** Those of them that were read over REST. */
  readonly #readGuilds = new Set<string>();
  readonly #stopped = new AbortController();
  /** Ends with the gateway session. */
  #change = new AbortController();
  #floor: string;
  /** Every conversation of this session is live or being read. */
  #isPlanned = false;

  private constructor(deps: ReceiverDeps, intake: Intake, contacts: Contacts) {
    const { bot, config } = deps;
    this.#deps = deps;
    this.#intake = intake;
    this.#anchors = new Map(intake.anchors);
    this.#floor = readCursor(bot, intake.cursor) ?? contacts.since;
    const directory = new Directory(bot);
    const recent = new RecentAuthors(bot);
    this.#directory = directory;
    this.#recent = recent;
    this.#reader = new Reader({ ...deps, directory, recent });
    this.#queue = new IntakeQueue({
      ...deps,
      accept: (batch) => intake.accept(batch),
      cursorFor: (newest) => this.#cursorFor(newest),
      onStored: (batch) => this.#stored(batch),
      onTakenOver: () => void this.#stopAll(),
    });
    this.#history = new History({
      ...deps,
      directory,
      contacts,
      maxAgeMs: config.backfillHours * 3_600_000,
      anchors: this.#anchors,
      floor: () => this.#floor,
      store: (entries) => this.#queue.push(entries),
      entriesOf: (message, place) => this.#reader.readHistoric(message, place),
      gap: (gap) => intake.gap(gap),
      onOverflow: () => this.#giveUp(),
    });
    this.#gateway = new Gateway({
      ...deps,
      token: config.token,
      onDispatch: (dispatch) => this.#receive(dispatch),
      onSessionLost: () => this.#sessionChanged(),
      onTrouble: (problem) => intake.trouble(problem),
    });
  }

  /**
   * Connects; resolves when live events are being received, or when the intake was told why they are not yet. Once
   * aborted it waits for nothing more and is only to be stopped.
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

  /** Begun anew, it reads what it has missed from the history. */
  #giveUp(): void {
    if (this.#stopped.signal.aborted) return;
    this.#stopAll();
    const detail = 'too many events wait to be stored; they are read from Discord’s history later';
    this.#intake.trouble({ kind: 'unreachable', code: 'not-stored', detail, isOver: true });
  }

  #receive(dispatch: Dispatch): void {
    if (this.#stopped.signal.aborted) return;
    const { sections = noSections } = this.#deps;
    try {
      sections.run('read dispatch', () => {
        this.#learn(dispatch);
        this.#handOn(dispatch);
      });
    } catch (error) {
      // Reading never throws for what Discord sends; whatever this is, the socket must go on.
      this.#deps.log.error({ event: dispatch.t, error: String(error) }, 'discord.dispatch-failed');
    }
  }

  /** Updates the directory before the event reaches the agent. */
  #learn(dispatch: Dispatch): void {
    const { t, d } = dispatch;
    if (d instanceof UnparsedJson) {
      if (t === 'GUILD_CREATE') void this.#askForLarge(idIn(d), this.#change.signal);
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
        // A direct channel is noted down with its first message.
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
   * Nobody else would read the channels without an anchor of a guild that does not come. It stays one that is
   * away: what is said there meanwhile may be told by nobody, so it is read once more when it comes.
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

  /** The gateway's report of the guild is too large to be parsed: its parts are requested, one by one. */
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

  /** The guild as the gateway would report it; undefined when it cannot be had now. */
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
    // Histories read while it was away may lack what was said there since.
    if (this.#awaitedGuilds.delete(guildId)) this.#history.untold(this.#channelsOf(guildId));
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
    if (fieldsOf(data).guild_id) {
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

  /** A guild that is away for a while has lost nobody; one that says no more has removed the bot. */
  #removed({ t, d, s }: Dispatch): void {
    const isGuild = t === 'GUILD_DELETE';
    const id = idIn(d);
    const guildId = isGuild ? id : idIn(d, 'guild_id');
    this.#awaitedGuilds.delete(isGuild ? id : '');
    if (isGuild && fieldsOf(d).unavailable === true) {
      this.#awaitedGuilds.add(id);
      this.#history.untold(this.#channelsOf(id));
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
        // Nothing is known of the conversation, or not whose it is: that is asked for first.
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

  /** Moves only while nothing is known to be missing: from there on everything would be read again. */
  #cursorFor(newest: string | undefined): string | undefined {
    const isComplete = this.#isPlanned && this.#awaitedGuilds.size === 0 && this.#history.isComplete;
    if (newest === undefined || !isComplete) return undefined;
    return formatCursor(this.#deps.bot, laterOf(this.#floor, snowflakeAt(timeOf(newest) - floorSlackMs)));
  }

  #stored({ anchors, cursor }: InboundBatch): void {
    for (const [conversation, anchor] of anchors ?? [])
      this.#anchors.set(conversation, laterOf(this.#anchors.get(conversation) ?? '0', anchor));
    this.#floor = readCursor(this.#deps.bot, cursor) ?? this.#floor;
  }
}
