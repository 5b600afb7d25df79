/**
 * Every field of signal-cli's JSON output and what Parley does with it. A test compares it with signal-cli's own
 * records, so that a new field becomes a task; until it has a fate, a message with nothing else names it to the model.
 */

/** `ignored: …` gives the reason; anything else says what the field becomes. */
export type Fate =
  | 'text'
  | 'described'
  | 'media'
  | 'event'
  | 'address'
  | `ignored: ${string}`
  | `refused: ${string}`;

type Fates = Readonly<Record<string, Fate>>;

const display = 'ignored: it only says how clients show the message';
const numbers = 'ignored: numbers change hands; the ACI counts';
const storied = 'ignored: that it is about a story is enough';

/** Fields of a record, by the record's name in signal-cli. */
export const fieldFates = {
  Envelope: {
    source: numbers,
    sourceNumber: 'address',
    sourceUuid: 'address',
    sourceName: 'address',
    sourceDevice: 'address',
    timestamp: 'address',
    serverReceivedTimestamp: 'address',
    serverDeliveredTimestamp: 'ignored: the time of receipt at the server counts',
    dataMessage: 'event',
    editMessage: 'event',
    storyMessage: 'ignored: a story is shown to all of its author’s contacts and asks nobody',
    syncMessage: 'event',
    callMessage: 'refused: Parley takes no calls',
    receiptMessage: 'ignored: a receipt is no message',
    typingMessage: 'ignored: typing is no message',
  },
  DataMessage: {
    timestamp: 'address',
    message: 'text',
    expiresInSeconds: 'ignored: the timer applies to clients',
    isExpirationUpdate: 'ignored: the timer applies to clients',
    viewOnce: 'media',
    reaction: 'event',
    quote: 'text',
    payment: 'described',
    mentions: 'text',
    previews: 'described',
    attachments: 'media',
    sticker: 'described',
    remoteDelete: 'event',
    contacts: 'described',
    pollCreate: 'described',
    pollVote: 'event',
    pollTerminate: 'event',
    textStyles: display,
    groupInfo: 'address',
    storyContext: 'text',
    pinMessage: 'event',
    unpinMessage: 'event',
    adminDelete: 'event',
  },
  Quote: {
    id: 'address',
    author: numbers,
    authorNumber: 'text',
    authorUuid: 'address',
    text: 'text',
    mentions: 'text',
    attachments: 'media',
    textStyles: display,
  },
  QuotedAttachment: { contentType: 'described', filename: 'described', thumbnail: 'media' },
  Attachment: {
    contentType: 'media',
    filename: 'media',
    id: 'media',
    size: 'media',
    width: 'ignored: read from the file',
    height: 'ignored: read from the file',
    caption: 'text',
    uploadTimestamp: 'ignored: the message has its own time',
  },
  PollCreate: { question: 'described', allowMultiple: 'described', options: 'described' },
  PollVote: {
    author: numbers,
    authorNumber: numbers,
    authorUuid: 'address',
    targetSentTimestamp: 'address',
    optionIndexes: 'event',
    voteCount: 'ignored: it only counts the votes of its voter',
  },
  PollTerminate: { targetSentTimestamp: 'address' },
  PinMessage: {
    targetAuthor: numbers,
    targetAuthorNumber: numbers,
    targetAuthorUuid: 'address',
    targetSentTimestamp: 'address',
    pinDurationSeconds: display,
  },
  UnpinMessage: {
    targetAuthor: numbers,
    targetAuthorNumber: numbers,
    targetAuthorUuid: 'address',
    targetSentTimestamp: 'address',
  },
  AdminDelete: {
    targetAuthor: numbers,
    targetAuthorNumber: numbers,
    targetAuthorUuid: 'address',
    targetSentTimestamp: 'address',
  },
  Reaction: {
    emoji: 'event',
    targetAuthor: numbers,
    targetAuthorNumber: numbers,
    targetAuthorUuid: 'address',
    targetSentTimestamp: 'address',
    isRemove: 'event',
  },
  RemoteDelete: { timestamp: 'address' },
  EditMessage: { targetSentTimestamp: 'address', dataMessage: 'text' },
  Sticker: { packId: 'ignored: nobody could read it', stickerId: 'described' },
  SharedContact: {
    name: 'described',
    avatar: 'ignored: a picture of the contact isn’t fetched',
    phone: 'described',
    email: 'described',
    address: 'described',
    organization: 'described',
  },
  Preview: {
    url: 'described',
    title: 'described',
    description: 'described',
    image: 'ignored: a picture of the linked page isn’t fetched',
  },
  Payment: { note: 'described', receipt: 'ignored: only Signal’s wallet can read it' },
  StoryContext: { authorNumber: storied, authorUuid: storied, sentTimestamp: storied },
  GroupInfo: {
    groupId: 'address',
    groupName: 'ignored: the list of groups has it',
    revision: 'ignored: the list of groups is read again after a change',
    type: 'event',
  },
  Mention: { name: numbers, number: 'text', uuid: 'address', start: 'text', length: 'text' },
} as const satisfies Readonly<Record<string, Fates>>;

/** Most names that are looked at. */
const maxNames = 1000;

/** Returns the names of a message's fields that have no fate, without empty ones. */
export function unknownFieldsOf(message: unknown): readonly string[] {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return [];
  const isEmpty = (value: unknown) =>
    value === null || value === undefined || value === false || (Array.isArray(value) && value.length === 0);
  return Object.entries(message)
    .slice(0, maxNames)
    .flatMap(([name, value]) => (isRead(name, value) || isEmpty(value) ? [] : [name]));
}

/** A text that isn't one is as good as unknown: without it, the message would vanish as empty. */
function isRead(name: string, value: unknown): boolean {
  return isKnown(name) && (name !== 'message' || typeof value === 'string');
}

function isKnown(name: string): boolean {
  return Object.hasOwn(fieldFates.DataMessage, name) || syncFields.has(name);
}

/** Fields beside those of a message, where another device of the account sent it. */
const syncFields = new Set([
  'destination',
  'destinationNumber',
  'destinationUuid',
  'editMessage',
  'dataMessage',
]);
