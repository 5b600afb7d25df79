import { invalidForm, refuse } from './errors.ts';
import { findMentions, type MentionScope } from './mentions.ts';
import { type Draft, requireContent } from './message-body.ts';
import { holdsMessages, isThread } from './permissions.ts';
import type { Platform } from './platform.ts';
import { compareIds } from './snowflake.ts';
import { messageTypes, type Ping, type StandingMessage, type StoredFile } from './types.ts';
import type { ChannelState, NewMessage, World } from './world.ts';

export type Posted = { readonly message: StandingMessage; readonly isRepeat: boolean };

/** Posts a message of the bot in a channel and reports it to the gateway, or finds the earlier one with its nonce. */
export function postAsBot(platform: Platform, channel: ChannelState, draft: Draft): Posted {
  const { world } = platform;
  requireWritable(world, channel, draft);
  requireContent(draft);
  const repeated = draft.enforcesNonce ? findByNonce(platform, draft.nonce) : undefined;
  if (repeated !== undefined) return { message: repeated, isRepeat: true };
  const target = readReplyTarget(world, channel, draft);
  unarchive(platform, channel);
  const message = addAsBot(platform, channel, draft, {
    ...(target === undefined ? {} : { replyTo: target.id, type: messageTypes.reply }),
  });
  return { message, isRepeat: false };
}

/** The part shared with answers to interactions, which need no permission. */
export function addAsBot(
  platform: Platform,
  channel: ChannelState,
  draft: Draft,
  more: Partial<NewMessage> = {},
): StandingMessage {
  const { world, events } = platform;
  const replied = more.replyTo === undefined ? undefined : channel.messages.get(more.replyTo)?.author.id;
  const text = draft.text ?? '';
  const message = world.add(channel, {
    author: world.bot,
    text,
    mentioned: findMentions(text, draft.allowed, botScope(world, channel, replied)),
    files: storeUploads(world, draft),
    nonce: draft.nonce,
    flags: draft.flags ?? 0,
    embeds: draft.embeds ?? [],
    components: draft.components ?? [],
    ...(draft.poll && { fields: { poll: draft.poll } }),
    ...more,
  });
  recordPing(platform, message, 'send');
  if (message.ephemeralFor === undefined) events.messageCreated(message);
  return message;
}

/** Edits a message of the bot; fields that the draft omits stay. */
export function editAsBot(platform: Platform, before: StandingMessage, draft: Draft): StandingMessage {
  const { world, events } = platform;
  const channel = world.channel(before.channelId);
  const kept =
    draft.keptFiles === undefined
      ? before.files
      : before.files.filter((file) => draft.keptFiles?.includes(file.id));
  const files = [...kept, ...storeUploads(world, draft)];
  const after = {
    ...(draft.text === undefined ? {} : { text: draft.text }),
    ...(draft.embeds === undefined ? {} : { embeds: draft.embeds }),
    ...(draft.components === undefined ? {} : { components: draft.components }),
    ...(draft.flags === undefined ? {} : { flags: draft.flags }),
    files,
  };
  const whole = { ...before, ...after };
  if (whole.text === '' && [whole.files, whole.embeds, whole.components].every((list) => list.length === 0))
    throw refuse('emptyMessage');
  const replied = before.replyTo === undefined ? undefined : channel.messages.get(before.replyTo)?.author.id;
  // The pings are determined again with the edit's own allowances, whatever the send allowed.
  const mentioned =
    draft.text === undefined
      ? before.mentioned
      : findMentions(draft.text, draft.allowed, botScope(world, channel, replied));
  const changed = world.change(before, { ...after, mentioned, editedAt: platform.now() });
  if (draft.text !== undefined) recordPing(platform, changed, 'edit');
  if (changed.ephemeralFor === undefined) events.messageUpdated(changed);
  return changed;
}

function requireWritable(world: World, channel: ChannelState, draft: Draft): void {
  if (channel.isBlocked) throw refuse('cannotMessageUser');
  if (!holdsMessages(channel.type)) throw refuse('nonTextChannel');
  world.require(channel, isThread(channel.type) ? 'sendMessagesInThreads' : 'sendMessages');
  if (draft.uploads.length > 0) world.require(channel, 'attachFiles');
  if (draft.poll && channel.guildId !== undefined) world.require(channel, 'sendPolls');
  if (channel.thread?.isArchived && channel.thread.isLocked && !world.botMay(channel, 'manageThreads'))
    throw refuse('threadArchived');
}

function findByNonce({ world, now, nonceWindowMs }: Platform, nonce: Draft['nonce']) {
  if (nonce === undefined) return undefined;
  const since = now() - nonceWindowMs;
  for (const channel of world.channels.values())
    for (const message of channel.messages.values()) {
      const isOwn = message.author.id === world.bot.id && message.nonce !== undefined;
      if (isOwn && String(message.nonce) === String(nonce) && message.at > since) return message;
    }
  return undefined;
}

function readReplyTarget(world: World, channel: ChannelState, { replyTo }: Draft) {
  if (replyTo === undefined) return undefined;
  if (!world.botMay(channel, 'readMessageHistory')) throw refuse('noReplyWithoutHistory');
  const target = channel.messages.get(replyTo.messageId);
  if (target === undefined && replyTo.failsIfGone)
    throw invalidForm('message_reference', 'REPLIES_UNKNOWN_MESSAGE', 'Unknown message');
  const isSystem = target !== undefined && ![0, 19, 20].includes(target.type);
  if (isSystem)
    throw invalidForm(
      'message_reference',
      'REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE',
      'Cannot reply to a system message',
    );
  return target;
}

/** Reopens an archived thread, as any message does; the platform reports that before the message. */
export function unarchive({ world, events }: Platform, channel: ChannelState): void {
  if (!channel.thread?.isArchived) return;
  channel.thread.isArchived = false;
  channel.thread.archivedAt = world.now();
  events.threadChanged(channel, 'THREAD_UPDATE');
}

function storeUploads(world: World, { uploads }: Draft): readonly StoredFile[] {
  return uploads.map(({ name, mimeType, bytes, description, fields }) =>
    world.addFile({
      ...{ name, mimeType, bytes },
      ...(description !== undefined && { description }),
      ...(fields && { fields }),
    }),
  );
}

function botScope(world: World, channel: ChannelState, repliedUser: string | undefined): MentionScope {
  const guild = world.guildOf(channel);
  const mayPingEveryone = guild !== undefined && world.botMay(channel, 'mentionEveryone');
  return {
    isUser: (id) => world.users.has(id),
    isRole: (id) =>
      (guild?.roles.get(id)?.isMentionable ?? false) || (mayPingEveryone && guild.roles.has(id)),
    mayPingEveryone,
    repliedUser,
  };
}

function recordPing({ pings }: Platform, message: StandingMessage, by: Ping['by']): void {
  const { mentioned, id, channelId } = message;
  if (mentioned.isEveryone || mentioned.roles.length > 0 || mentioned.users.length > 0)
    pings.push({ ...mentioned, messageId: id, channelId, by });
}

/** Returns the messages in a channel that everyone can see, oldest first. */
export function visibleMessages(channel: ChannelState): readonly StandingMessage[] {
  return [...channel.messages.values()]
    .filter((message) => message.ephemeralFor === undefined)
    .sort((a, b) => compareIds(a.id, b.id));
}
