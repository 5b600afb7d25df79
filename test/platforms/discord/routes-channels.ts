import { invalidForm, refuse } from './errors.ts';
import { readMessageBody } from './message-body.ts';
import { isThread } from './permissions.ts';
import { type Answer, idOf, noContent, ok, type Request, type Routes, shown } from './platform.ts';
import { addAsBot } from './posting.ts';
import { channelOf, readLimit } from './routes-messages.ts';
import { compareIds } from './snowflake.ts';
import { openThread } from './threads.ts';
import { channelTypes } from './types.ts';
import type { ChannelState } from './world.ts';

/** Channels and threads. */
export const channelRoutes: Routes = {
  'GET /channels/:channel': (request) => ok(request.platform.render.channel(channelOf(request))),
  'PATCH /channels/:channel': changeThread,
  'POST /channels/:channel/messages/:message/threads': startThreadOnMessage,
  'POST /channels/:channel/threads': startThread,
  'GET /channels/:channel/threads/archived/public': listArchived,
  'GET /channels/:channel/thread-members': listThreadMembers,
  'PUT /channels/:channel/thread-members/@me': (request) => joinThread(request, true),
  'DELETE /channels/:channel/thread-members/@me': (request) => joinThread(request, false),
};

function threadOf(request: Request): ChannelState & { readonly thread: NonNullable<ChannelState['thread']> } {
  const channel = channelOf(request);
  const { thread } = channel;
  if (thread === undefined) throw refuse('wrongChannelType');
  return Object.assign(channel, { thread });
}

/** Opens, archives, locks or renames a thread. A bot without permissions can't change other channels. */
function changeThread(request: Request): Answer {
  const { world, events, render } = request.platform;
  const channel = channelOf(request);
  const { thread } = channel;
  if (thread === undefined) throw refuse('missingPermissions');
  const { archived, locked, name } = request.body;
  const isOwn = thread.owner.id === world.bot.id;
  if (!isOwn && (locked !== undefined || name !== undefined)) world.require(channel, 'manageThreads');
  if (thread.isArchived && archived !== false) throw refuse('threadArchived');
  if (thread.isLocked && !isOwn) world.require(channel, 'manageThreads');
  if (archived === true && !isOwn) world.require(channel, 'manageThreads');
  if (typeof archived === 'boolean') {
    thread.isArchived = archived;
    thread.archivedAt = world.now();
  }
  if (typeof locked === 'boolean') thread.isLocked = locked;
  if (typeof name === 'string') channel.name = readName(name);
  events.threadChanged(channel, 'THREAD_UPDATE');
  return ok(render.channel(channel));
}

function readName(value: unknown): string {
  const name = typeof value === 'string' ? value.trim() : '';
  if (name.length < 1 || name.length > 100)
    throw invalidForm('name', 'BASE_TYPE_BAD_LENGTH', 'Must be between 1 and 100 in length.');
  return name;
}

function startThreadOnMessage(request: Request): Answer {
  const { world, render } = request.platform;
  const parent = channelOf(request);
  if (parent.type !== channelTypes.text && parent.type !== channelTypes.announcement)
    throw refuse('wrongChannelType');
  world.require(parent, 'createPublicThreads');
  const message = parent.messages.get(idOf(request, 'message'));
  if (message === undefined) throw refuse('unknownMessage');
  if (world.channels.has(message.id)) throw refuse('threadExists');
  const name = readName(request.body.name);
  const thread = openThread(request.platform, { parent, name, owner: world.bot, on: message });
  return { status: 201, body: render.channel(thread) };
}

/** Starts a thread: in a forum, a post with its first message; elsewhere, a thread without a message. */
function startThread(request: Request): Answer {
  const { platform, body, files } = request;
  const { world, render } = platform;
  const parent = channelOf(request);
  if (isThread(parent.type) || parent.guildId === undefined) throw refuse('wrongChannelType');
  const name = readName(body.name);
  if (parent.type !== channelTypes.forum) {
    world.require(parent, 'createPublicThreads');
    const isPrivate = body.type !== channelTypes.publicThread;
    const thread = openThread(platform, { parent, name, owner: world.bot, isPrivate });
    return { status: 201, body: render.channel(thread) };
  }
  if (typeof body.message !== 'object' || body.message === null)
    throw invalidForm('message', 'BASE_TYPE_REQUIRED', 'This field is required');
  world.require(parent, 'sendMessages');
  const draft = readMessageBody(body.message as Request['body'], files, { under: 'message.' });
  const thread = openThread(platform, { parent, name, owner: world.bot });
  const message = addAsBot(platform, thread, draft, { id: thread.id });
  request.call.messageId = message.id;
  return { status: 201, body: { ...render.channel(thread), message: shown(platform, message) } };
}

function listArchived(request: Request): Answer {
  const { world, render } = request.platform;
  const parent = channelOf(request);
  const limit = readLimit(request.query.get('limit'));
  const before = request.query.get('before');
  const found = [...world.channels.values()]
    .filter((one) => one.parentId === parent.id && one.thread?.isArchived)
    .filter((one) => one.type !== channelTypes.privateThread)
    .filter((one) => before === null || (one.thread?.archivedAt ?? 0) < Date.parse(before))
    .sort((a, b) => (b.thread?.archivedAt ?? 0) - (a.thread?.archivedAt ?? 0) || compareIds(b.id, a.id));
  const threads = found.slice(0, limit);
  return ok({
    threads: threads.map((one) => render.channel(one)),
    members: threads
      .filter((one) => one.thread?.members.has(world.bot.id))
      .map((one) => render.threadMember(one, world.bot.id)),
    has_more: found.length > limit,
  });
}

function listThreadMembers(request: Request): Answer {
  const channel = threadOf(request);
  return ok([...channel.thread.members].map((id) => request.platform.render.threadMember(channel, id)));
}

function joinThread(request: Request, isJoining: boolean): Answer {
  const channel = threadOf(request);
  if (channel.thread.isArchived) throw refuse('threadArchived');
  const { bot } = request.platform.world;
  if (isJoining) channel.thread.members.add(bot.id);
  else channel.thread.members.delete(bot.id);
  return noContent;
}
