import { type ChannelType, channelTypes } from './types.ts';

/** The permission bits that this server knows. */
export const permissions = {
  addReactions: 1n << 6n,
  viewChannel: 1n << 10n,
  sendMessages: 1n << 11n,
  manageMessages: 1n << 13n,
  embedLinks: 1n << 14n,
  attachFiles: 1n << 15n,
  readMessageHistory: 1n << 16n,
  mentionEveryone: 1n << 17n,
  useExternalEmojis: 1n << 18n,
  useApplicationCommands: 1n << 31n,
  manageThreads: 1n << 34n,
  createPublicThreads: 1n << 35n,
  sendMessagesInThreads: 1n << 38n,
  sendPolls: 1n << 49n,
  pinMessages: 1n << 51n,
} as const;
export type Permission = keyof typeof permissions;

/** What everybody may do in a new guild. The bot may ping @everyone, so that a send that does so is noticed. */
export const everybodyMay: bigint = Object.entries(permissions)
  .filter(([name]) => !['manageMessages', 'manageThreads', 'pinMessages'].includes(name))
  .reduce((all, [, bit]) => all | bit, 0n);

export const isThread = (type: ChannelType): boolean =>
  type === channelTypes.publicThread ||
  type === channelTypes.privateThread ||
  type === channelTypes.announcementThread;

export const holdsMessages = (type: ChannelType): boolean => type !== channelTypes.forum;
