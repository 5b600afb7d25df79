/** Payloads as Discord sends them, and the context in which the pure parts read them. */
import type { Sender } from '#contracts/envelope.ts';
import { Directory } from '../../../channels/discord/directory.ts';
import { botOf, isSnowflake, timeOf } from '../../../channels/discord/ids.ts';
import {
  type Dispatch,
  type MappingContext,
  type ReadResult,
  readDispatch,
} from '../../../channels/discord/inbound.ts';
import type { User } from '../../../channels/discord/payload-schema.ts';

export const bot = botOf({ id: '1100000000000000001', username: 'parley' });
export const guildId = '1200000000000000001';
export const general = '1200000000000000002';
export const forum = '1200000000000000003';
export const thread = '1200000000000000004';
export const ownRole = '1200000000000000005';
export const adminRole = '1200000000000000006';
export const dm = '1300000000000000001';

export const ada = { id: '1400000000000000001', username: 'ada_l', global_name: 'Ada', discriminator: '0' };
export const bob = { id: '1400000000000000002', username: 'bob', global_name: null, discriminator: '0' };

type Fields = Readonly<Record<string, unknown>>;

let counter = 0n;
/** Returns growing ids, each about a second after the one before. */
export const nextId = () => String(1450000000000000000n + ++counter * 4_194_304_000n);

export function aGuild(over: Fields = {}): Fields {
  return {
    id: guildId,
    name: 'Team',
    owner_id: bob.id,
    roles: [
      { id: guildId, name: '@everyone', permissions: '68608' },
      { id: ownRole, name: 'Parley', permissions: '0', managed: true, tags: { bot_id: bot.id } },
      { id: adminRole, name: 'Boss', permissions: '32' },
    ],
    channels: [
      { id: general, type: 0, name: 'general', last_message_id: null, permission_overwrites: [] },
      { id: forum, type: 15, name: 'ideas', permission_overwrites: [] },
    ],
    threads: [{ id: thread, type: 11, name: 'a plan', parent_id: forum, last_message_id: null }],
    members: [{ user: { id: bot.id, username: 'parley', bot: true }, roles: [ownRole] }],
    ...over,
  };
}

export function aMessage(over: Fields = {}): Fields & { readonly id: string } {
  const id = typeof over.id === 'string' ? over.id : nextId();
  return {
    type: 0,
    channel_id: general,
    guild_id: guildId,
    author: ada,
    member: { nick: null, roles: [], joined_at: '2026-01-01T00:00:00.000000+00:00' },
    content: 'hello',
    timestamp: isSnowflake(id) ? new Date(timeOf(id)).toISOString() : 'never',
    edited_timestamp: null,
    tts: false,
    mention_everyone: false,
    mentions: [],
    mention_roles: [],
    attachments: [],
    embeds: [],
    pinned: false,
    flags: 0,
    ...over,
    id,
  };
}

export const aDirectMessage = (over: Fields = {}) => {
  const { guild_id: _, member: __, ...message } = aMessage(over);
  return { ...message, channel_id: dm };
};

export type Scene = {
  readonly directory: Directory;
  readonly authors: Map<string, Sender>;
  readonly people: Map<string, User>;
  /** The words of polls' answers, by message and number. */
  readonly answers: Map<string, string>;
  read(t: string, d: unknown, s?: number): ReadResult;
  readonly around: MappingContext;
};

export function aScene(guild: Fields = aGuild()): Scene {
  const directory = new Directory(bot);
  directory.apply('GUILD_CREATE', guild);
  directory.learnDirect(dm);
  const authors = new Map<string, Sender>();
  const people = new Map<string, User>();
  const answers = new Map<string, string>();
  const around: MappingContext = {
    bot,
    session: 'session-1',
    receivedAt: 1_800_000_000_000,
    directory,
    recent: {
      authorOf: (id) => authors.get(id),
      person: (id) => people.get(id),
      answerOf: (id, answer) => answers.get(`${id}/${answer}`),
    },
  };
  const read = (t: string, d: unknown, s = 7) => readDispatch({ t, d, s } satisfies Dispatch, around);
  return { directory, authors, people, answers, around, read };
}

/** Returns the single event of a reading; throws if there isn't exactly one. */
export function only(reading: ReadResult) {
  if (reading.kind !== 'events' || reading.events.length !== 1)
    throw new Error(`expected one event, got ${JSON.stringify(reading)}`);
  const [envelope] = reading.events;
  if (envelope === undefined) throw new Error('no event');
  return { ...reading, envelope };
}
