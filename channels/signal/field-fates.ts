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
    isVoiceNote: 'media',
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

/**
 * Returns the names of a message's fields that have no fate, and of those that have content, without empty ones. They
 * count if the message turns out to have none: then that content couldn't be read.
 */
export function unknownFieldsOf(message: unknown): readonly string[] {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return [];
  return Object.entries(message)
    .slice(0, maxNames)
    .flatMap(([name, value]) => (isContent(name) && !isEmptyField(value) ? [name] : []));
}

/** Returns the names of an envelope's records that have no fate. */
export function unknownPayloadsOf(envelope: object): readonly string[] {
  return Object.entries(envelope)
    .slice(0, maxNames)
    .filter(([name, value]) => !Object.hasOwn(fieldFates.Envelope, name) && typeof value === 'object')
    .flatMap(([name, value]) => (isEmptyField(value) ? [] : [name]));
}

/** Says whether a field has no value; older releases send empty lists. */
export function isEmptyField(value: unknown): boolean {
  return value == null || value === false || value === '' || (Array.isArray(value) && value.length === 0);
}

function isContent(name: string): boolean {
  const fates: Fates = fieldFates.DataMessage;
  const fate = Object.hasOwn(fates, name) ? fates[name] : undefined;
  return fate === undefined ? !syncFields.has(name) : contentFates.has(fate);
}

const contentFates: ReadonlySet<Fate> = new Set(['text', 'described', 'media']);

/** Fields beside those of a message, where another device of the account sent it. */
const syncFields = new Set([
  'destination',
  'destinationNumber',
  'destinationUuid',
  'editMessage',
  'dataMessage',
]);
