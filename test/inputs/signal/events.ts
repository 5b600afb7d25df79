/** What people do to messages, and what is refused or no message at all. */
import { at, bea, botAci, content, data, envelope, group, type SignalInput, target } from './signal-input.ts';

const records = 'signal-cli 0.14, org.asamk.signal.json records';
const act = { read: { event: 'act' }, shape: records } as const;
const nothing = { shape: records } as const;
const unclear = 'change of an unknown message';

export const events: readonly SignalInput[] = [
  {
    name: 'a reaction',
    shape: 'signal-cli #389',
    frame: data({ reaction: { emoji: '👍', ...target(), isRemove: false } }),
    read: { event: 'reaction' },
  },
  {
    name: 'a reaction taken back',
    shape: records,
    frame: data({ reaction: { emoji: '👍', ...target(), isRemove: true } }),
    read: { event: 'reaction' },
  },
  {
    name: 'a reaction to a message without an author',
    shape: records,
    frame: data({ reaction: { emoji: '👍', ...target(null) } }),
    read: { event: 'unsupported', refused: unclear },
  },
  {
    name: 'a deleted message',
    shape: records,
    frame: data({ remoteDelete: { timestamp: at - 9 } }),
    read: { event: 'delete' },
  },
  {
    name: 'a deletion by an admin',
    shape: records,
    frame: data({ adminDelete: target(), groupInfo: group }),
    read: { event: 'delete' },
  },
  {
    name: 'a vote',
    frame: data({
      pollVote: {
        author: bea,
        authorNumber: null,
        authorUuid: bea,
        targetSentTimestamp: at - 9,
        optionIndexes: [1],
        voteCount: 1,
      },
    }),
    ...act,
  },
  {
    name: 'a vote taken back',
    frame: data({
      pollVote: { authorUuid: bea, targetSentTimestamp: at - 9, optionIndexes: [], voteCount: 2 },
    }),
    ...act,
  },
  { name: 'the end of a poll', frame: data({ pollTerminate: { targetSentTimestamp: at - 9 } }), ...act },
  {
    name: 'a pin',
    frame: data({ pinMessage: { ...target(), pinDurationSeconds: -1 }, groupInfo: group }),
    ...act,
  },
  { name: 'the end of a pin', frame: data({ unpinMessage: target(), groupInfo: group }), ...act },
  {
    name: 'a pin of nobody’s message',
    shape: records,
    frame: data({ pinMessage: target(null) }),
    read: { event: 'unsupported', refused: unclear },
  },
  {
    name: 'a group of the first kind',
    shape: 'signal-cli-rest-api, groups V1',
    frame: data({
      message: 'hi',
      groupInfo: { groupId: Buffer.alloc(16, 1).toString('base64'), type: 'DELIVER' },
    }),
    read: { event: 'unsupported', refused: 'group-v1' },
  },
  {
    name: 'a call',
    shape: records,
    frame: envelope({ callMessage: { offerMessage: { id: 1, type: 'AUDIO_CALL', opaque: '' } } }),
    read: { event: 'unsupported', refused: 'call' },
  },
  {
    name: 'a record that nobody knows yet',
    shape: 'none: what a later signal-cli may add beside dataMessage',
    frame: envelope({ hologramMessage: { size: 3 }, callMessage: null, newFlag: true }),
    read: { event: 'unsupported', refused: 'hologramMessage' },
  },
  {
    name: 'a reply to a story without a word',
    shape: records,
    frame: data({ storyContext: { authorNumber: null, authorUuid: bea, sentTimestamp: 1 } }),
    read: { event: 'unsupported', refused: 'storyContext' },
  },
  { name: 'a call that rings', frame: envelope({ callMessage: { iceUpdateMessages: [] } }), ...nothing },
  {
    name: 'a story',
    frame: envelope({
      storyMessage: {
        allowsReplies: true,
        groupId: null,
        fileAttachment: null,
        textAttachment: { text: 'hi' },
      },
    }),
    ...nothing,
  },
  {
    name: 'a receipt',
    frame: envelope({
      receiptMessage: { when: at, isDelivery: true, isRead: false, isViewed: false, timestamps: [at] },
    }),
    ...nothing,
  },
  { name: 'typing', frame: envelope({ typingMessage: { action: 'STARTED', timestamp: at } }), ...nothing },
  { name: 'a new timer', frame: data({ isExpirationUpdate: true, expiresInSeconds: 3600 }), ...nothing },
  { name: 'a message without anything, as after a new profile key', frame: data({}), ...nothing },
  { name: 'a change of a group', frame: data({ groupInfo: { ...group, type: 'UPDATE' } }), ...nothing },
  {
    name: 'a message of the account’s owner to somebody else',
    shape: records,
    frame: envelope({
      sourceUuid: botAci,
      syncMessage: {
        sentMessage: {
          destination: bea,
          destinationNumber: null,
          destinationUuid: bea,
          ...content({ message: 'private' }),
        },
      },
    }),
    read: { event: 'message', text: 'private' },
  },
  {
    name: 'read messages of another device',
    frame: envelope({ sourceUuid: botAci, syncMessage: { readMessages: [{ sender: bea, timestamp: at }] } }),
    ...nothing,
  },
  {
    name: 'a note that contacts were synchronized',
    shape: 'signalbot-org/signalbot#175',
    frame: envelope({ sourceUuid: botAci, syncMessage: { type: 'CONTACTS_SYNC' } }),
  },
  {
    name: 'a list of blocked people',
    frame: envelope({ sourceUuid: botAci, syncMessage: { blockedNumbers: [], blockedGroupIds: [] } }),
    ...nothing,
  },
];
