import type { Platform } from './platform.ts';
import { channelTypes, type DiscordUser, messageFlags, messageTypes, type StandingMessage } from './types.ts';
import type { ChannelState } from './world.ts';

export type NewThread = {
  readonly parent: ChannelState;
  readonly name: string;
  readonly owner: DiscordUser;
  /** The message that the thread is attached to; the thread has its id. */
  readonly on?: StandingMessage;
  /** Only members who were added can see it. */
  readonly isPrivate?: boolean;
};

/**
 * Opens a thread and reports it to the gateway. One on a message also updates that message, without changing its text,
 * and starts with a message that only points to it. One without leaves a system message in its parent.
 */
export function openThread({ world, events }: Platform, { on, ...thread }: NewThread): ChannelState {
  const { owner, parent, name } = thread;
  const state = world.addThread({ ...thread, ...(on === undefined ? {} : { id: on.id }) });
  events.threadChanged(state, 'THREAD_CREATE', { newly_created: true });
  if (on !== undefined) {
    const starter = { author: owner, type: messageTypes.threadStarter, replyTo: on.id };
    events.messageCreated(world.add(state, starter));
    events.messageUpdated(world.change(on, { flags: on.flags | messageFlags.hasThread }));
  } else if (parent.type !== channelTypes.forum && !thread.isPrivate) {
    const fields = { message_reference: { type: 0, channel_id: state.id, guild_id: parent.guildId } };
    const note = { author: owner, type: messageTypes.threadCreated, text: name, fields };
    events.messageCreated(world.add(parent, note));
  }
  return state;
}
