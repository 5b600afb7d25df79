/** Turns gateway events and history into entries for the intake, using what is known about their context. */
import { createHash } from 'node:crypto';
import { cleanText } from '#channel-kit/clean-text.ts';
import { keyOf, nobody } from '#channel-kit/event-mapping.ts';
import { remoteTime } from '#channel-kit/remote-number.ts';
import type { Acceptance } from '#contracts/acceptance.ts';
import type { Clock } from '#contracts/clock.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { type ConversationId, conversationId } from '#contracts/ids.ts';
import type { ChannelLocation, Directory } from './directory.ts';
import { anchorOf } from './history.ts';
import { type Bot, discord, interactionMessage, isGiven } from './ids.ts';
import {
  type Dispatch,
  type MappingContext,
  pressOf,
  type ReadResult,
  readDispatch,
  readHistoric,
  unreadableRow,
} from './inbound.ts';
import type { Entry } from './intake-queue.ts';
import type { Interactions } from './interactions.ts';
import { joiningSchema } from './payload-schema.ts';
import { senderOf } from './permissions.ts';
import type { RecentAuthors } from './recent.ts';

export type ReaderDeps = {
  readonly bot: Bot;
  readonly clock: Clock;
  readonly directory: Directory;
  readonly recent: RecentAuthors;
  readonly interactions: Pick<Interactions, 'settled' | 'pressed'>;
};

export class Reader {
  readonly #deps: ReaderDeps;
  #session = '';

  constructor(deps: ReaderDeps) {
    this.#deps = deps;
  }

  /** `session`: the gateway's own name for the session that events now come from. */
  sessionBegan(session: string): void {
    this.#session = createHash('sha256').update(session).digest('hex').slice(0, 16);
  }

  read(dispatch: Dispatch): ReadResult {
    return readDispatch(dispatch, this.#surroundings());
  }

  /** Reads an event again after Discord was asked about its conversation; it is unreadable if that is still unknown. */
  readAgain(dispatch: Dispatch): readonly Entry[] {
    const reading = this.read(dispatch);
    if (reading.kind !== 'unplaced') return this.entriesOf(reading);
    const unknown = new Error('its conversation is not known');
    return [{ events: [], unreadable: unreadableRow(dispatch, this.#session, unknown) }];
  }

  /** Reads a message of the history. */
  readHistoric(message: unknown, place: ChannelLocation): readonly Entry[] {
    this.#deps.recent.note(message);
    return this.entriesOf(readHistoric(message, place, this.#surroundings()));
  }

  /** Reports the bot's removal from these channels of a guild. */
  readRemoval(channels: readonly string[], guildId: string, s: number): readonly Entry[] {
    const events = readRemoval(channels.map(conversationId), { guildId, s }, this.#surroundings());
    return events.length === 0 ? [] : [{ events }];
  }

  /** Reports that the bot was recently added to a guild; empty if it wasn't. */
  readJoining(guild: unknown): readonly Entry[] {
    const event = readJoining(guild, this.#surroundings());
    return event === undefined ? [] : [{ events: [event] }];
  }

  entriesOf(reading: ReadResult): readonly Entry[] {
    switch (reading.kind) {
      case 'nothing':
      case 'unplaced':
        return [];
      case 'unreadable':
        return [{ events: [], unreadable: reading.row }];
      case 'own':
        // Nothing to store except how far history is known.
        return [{ events: [], ...this.#anchorAt(reading.place, reading.messageId) }];
      case 'events':
        return [this.#entryOf(reading)];
      default:
        return reading satisfies never;
    }
  }

  #entryOf({ place, events, messageId }: Extract<ReadResult, { kind: 'events' }>): Entry {
    const { interactions } = this.#deps;
    const [first] = events;
    const command = interactionMessage.read(first?.route.replyTo);
    const press = first && pressOf(first);
    const onAccepted = ([acceptance]: readonly Acceptance[]): void => {
      if (command !== undefined) interactions.settled(command, acceptance);
      if (press !== undefined) interactions.pressed(press, acceptance);
    };
    const isInteraction = command !== undefined || press !== undefined;
    return { events, ...this.#anchorAt(place, messageId), ...(isInteraction && { onAccepted }) };
  }

  #anchorAt(place: ChannelLocation, messageId: string | undefined): Pick<Entry, 'anchor'> {
    if (messageId === undefined || !isGiven(messageId, this.#deps.clock.now())) return {};
    return { anchor: { conversation: anchorOf(place), messageId } };
  }

  #surroundings(): MappingContext {
    const { bot, clock, directory, recent } = this.#deps;
    return { bot, directory, recent, session: this.#session, receivedAt: clock.now() };
  }
}

/** Reports that the bot was removed: one event for each conversation it knew there. */
export function readRemoval(
  conversations: readonly ConversationId[],
  { guildId, s }: { readonly guildId: string; readonly s: number },
  around: Pick<MappingContext, 'bot' | 'session' | 'receivedAt'>,
): readonly InboundEnvelope[] {
  return conversations.map((conversation) => ({
    eventKey: keyOf('membership', conversation, 'off', around.session, s),
    sentAt: around.receivedAt,
    route: { channel: discord, account: around.bot.account, conversation },
    chat: { kind: 'group', parent: conversationId(guildId) },
    sender: nobody,
    event: { kind: 'membership', isMember: false },
  }));
}

/** After this time it is no longer news that the bot has joined, ms. */
const newsMs = 24 * 3_600_000;

/**
 * Returns one event for the guild, in the channel where Discord greets newcomers; undefined if the bot joined longer
 * ago, or may not write anywhere. Discord repeats the report in every session and doesn't say who added the bot, so
 * the key identifies the joining, and the guild's owner counts as the sender.
 */
function readJoining(data: unknown, around: MappingContext): InboundEnvelope | undefined {
  const guild = joiningSchema.safeParse(data).data;
  if (guild === undefined) return undefined;
  const { id, owner_id: ownerId, joined_at: joinedAt, system_channel_id: greeting } = guild;
  const { bot, receivedAt } = around;
  const place = around.directory.greetingPlace(id, greeting);
  if (place === undefined || !(Date.parse(joinedAt) > receivedAt - newsMs)) return undefined;
  const user = around.recent.person(ownerId) ?? { id: ownerId, username: ownerId };
  return {
    eventKey: keyOf('membership', id, 'on', cleanText(joinedAt)),
    sentAt: remoteTime(Date.parse(joinedAt), receivedAt),
    route: place.route,
    chat: place.chat,
    sender: senderOf({ user }, bot),
    event: { kind: 'membership', isMember: true },
  };
}
