import { invalidForm, refuse } from './errors.ts';
import { nonceOf } from './events.ts';
import { snowflakeExpected } from './mentions.ts';
import { readMessageBody } from './message-body.ts';
import { type Answer, idOf, noContent, ok, type Request, type Routes, shown } from './platform.ts';
import { editAsBot, postAsBot, visibleMessages } from './posting.ts';
import { isKnownEmoji, readEmoji } from './reactions.ts';
import { compareIds, isSnowflake } from './snowflake.ts';
import type { StandingMessage } from './types.ts';
import type { ChannelState } from './world.ts';

export const messageRoutes: Routes = {
  'GET /channels/:channel/messages': listMessages,
  'POST /channels/:channel/messages': createMessage,
  'POST /channels/:channel/messages/bulk-delete': bulkDelete,
  'GET /channels/:channel/messages/:message': ({ platform, ...rest }) =>
    ok(shown(platform, found({ platform, ...rest }).message)),
  'PATCH /channels/:channel/messages/:message': editMessage,
  'DELETE /channels/:channel/messages/:message': deleteMessage,
  'PUT /channels/:channel/messages/pins/:message': (request) => pin(request, true),
  'DELETE /channels/:channel/messages/pins/:message': (request) => pin(request, false),
  'PUT /channels/:channel/messages/:message/reactions/:emoji/@me': (request) => react(request, true),
  'DELETE /channels/:channel/messages/:message/reactions/:emoji/@me': (request) => react(request, false),
  'GET /channels/:channel/messages/:message/reactions/:emoji': listReactions,
  'POST /channels/:channel/typing': type,
};

export const channelOf = (request: Request): ChannelState =>
  request.platform.world.visible(idOf(request, 'channel'));

function found(request: Request): { readonly channel: ChannelState; readonly message: StandingMessage } {
  const channel = channelOf(request);
  const message = channel.messages.get(idOf(request, 'message'));
  if (message === undefined || message.ephemeralFor !== undefined) throw refuse('unknownMessage');
  return { channel, message };
}

/** Lists messages, newest first. `after` selects the oldest ones after the id, still newest first. */
function listMessages(request: Request): Answer {
  const { platform, query } = request;
  const channel = channelOf(request);
  const limit = readLimit(query.get('limit'));
  const marks = ['before', 'after', 'around'].filter((name) => query.has(name));
  if (marks.length > 1)
    throw invalidForm(
      '',
      'MULTIPLE_MESSAGE_REFERENCES',
      'Only one of before, after and around may be given.',
    );
  const name = marks[0];
  const mark = name === undefined ? '0' : (query.get(name) ?? '');
  if (name !== undefined && !isSnowflake(mark)) throw snowflakeExpected(name, mark);
  if (!platform.world.botMay(channel, 'readMessageHistory')) return ok([]);
  const all = visibleMessages(channel);
  const chosen = choose(all, name, mark, limit);
  return ok(chosen.toReversed().map((message) => shown(platform, message)));
}

function choose(all: readonly StandingMessage[], name: string | undefined, mark: string, limit: number) {
  if (name === 'after') return all.filter(({ id }) => compareIds(id, mark) > 0).slice(0, limit);
  if (name === 'before') return all.filter(({ id }) => compareIds(id, mark) < 0).slice(-limit);
  if (name === undefined) return all.slice(-limit);
  const half = Math.floor(limit / 2);
  const before = all.filter(({ id }) => compareIds(id, mark) < 0).slice(-half);
  const from = all.filter(({ id }) => compareIds(id, mark) >= 0).slice(0, limit - half);
  return [...before, ...from];
}

export function readLimit(value: string | null, most = 100, usual = 50): number {
  if (value === null) return usual;
  const limit = Number(value);
  if (!Number.isInteger(limit))
    throw invalidForm('limit', 'NUMBER_TYPE_COERCE', `Value "${value}" is not int.`);
  if (limit > most)
    throw invalidForm('limit', 'NUMBER_TYPE_MAX', `int value should be less than or equal to ${most}.`);
  if (limit < 1)
    throw invalidForm('limit', 'NUMBER_TYPE_MIN', 'int value should be greater than or equal to 1.');
  return limit;
}

function createMessage(request: Request): Answer {
  const { platform, body, files, call } = request;
  const channel = channelOf(request);
  const { message, isRepeat } = postAsBot(platform, channel, readMessageBody(body, files));
  call.messageId = message.id;
  if (isRepeat) call.isRepeat = true;
  return ok({ ...shown(platform, message), ...nonceOf(message) });
}

function editMessage(request: Request): Answer {
  const { platform, body, files, call } = request;
  const { channel, message } = found(request);
  const draft = readMessageBody(body, files);
  if (message.author.id !== platform.world.bot.id) throw refuse('notTheAuthor');
  if (channel.thread?.isArchived) throw refuse('threadArchived');
  call.messageId = message.id;
  return ok(shown(platform, editAsBot(platform, message, draft)));
}

function deleteMessage(request: Request): Answer {
  const { platform, call } = request;
  const { world, events } = platform;
  const { channel, message } = found(request);
  call.messageId = message.id;
  const isOwn = message.author.id === world.bot.id;
  if (!isOwn && channel.guildId === undefined) throw refuse('notInDm');
  if (!isOwn) world.require(channel, 'manageMessages');
  if (channel.thread?.isArchived) throw refuse('threadArchived');
  world.delete(message);
  events.messageDeleted(message);
  return noContent;
}

function pin(request: Request, isPinned: boolean): Answer {
  const { world, events } = request.platform;
  const { channel, message } = found(request);
  request.call.messageId = message.id;
  if (channel.guildId !== undefined) world.require(channel, 'pinMessages');
  events.messageUpdated(world.change(message, { fields: { ...message.fields, pinned: isPinned } }));
  return noContent;
}

function bulkDelete(request: Request): Answer {
  const { world, events } = request.platform;
  const channel = channelOf(request);
  if (channel.guildId === undefined) throw refuse('notInDm');
  world.require(channel, 'manageMessages');
  const ids = Array.isArray(request.body.messages) ? request.body.messages.map(String) : [];
  if (ids.length < 2 || ids.length > 100)
    throw invalidForm('messages', 'BASE_TYPE_BAD_LENGTH', 'Must be between 2 and 100 in length.');
  for (const id of ids) {
    const message = channel.messages.get(id);
    if (message !== undefined) world.delete(message);
  }
  events.messagesDeleted(channel, ids);
  return noContent;
}

function react(request: Request, isAdded: boolean): Answer {
  const { world, events } = request.platform;
  const { channel, message } = found(request);
  request.call.messageId = message.id;
  const key = readEmoji(idOf(request, 'emoji'));
  if (!isKnownEmoji(world, key)) throw refuse('unknownEmoji');
  if (channel.thread?.isArchived) throw refuse('threadArchived');
  const users = message.reactions.get(key) ?? new Set();
  if (isAdded && channel.isBlocked) throw refuse('cannotMessageUser');
  if (isAdded && users.size === 0) {
    world.require(channel, 'addReactions');
    if (message.reactions.size >= 20) throw refuse('tooManyReactions');
  }
  if (isAdded) world.require(channel, 'readMessageHistory');
  if (users.has(world.bot.id) === isAdded) return noContent;
  events.reacted(world.react(message, world.bot.id, key, isAdded), world.bot.id, key, isAdded);
  return noContent;
}

function listReactions(request: Request): Answer {
  const { world, render } = request.platform;
  const { message } = found(request);
  const users = message.reactions.get(readEmoji(idOf(request, 'emoji'))) ?? new Set<string>();
  const limit = readLimit(request.query.get('limit'), 100, 25);
  const known = [...users].map((id) => world.users.get(id)).filter((user) => user !== undefined);
  return ok(known.slice(0, limit).map((user) => render.user(user)));
}

function type(request: Request): Answer {
  const { platform } = request;
  const channel = channelOf(request);
  if (channel.isBlocked) throw refuse('cannotMessageUser');
  platform.world.require(channel, channel.thread === undefined ? 'sendMessages' : 'sendMessagesInThreads');
  platform.typing.push({ channelId: channel.id, at: platform.now() });
  platform.events.typing(channel, platform.world.bot.id);
  return noContent;
}
