/**
 * The fields of signal-cli's JSON records, as in `src/main/java/org/asamk/signal/json` of commit c26e0632 (2026-07-13)
 * and in the API description of signal-cli-rest-api. Extend a list when a record gets a field; the corpus then asks for
 * its fate.
 */
const target = ['targetAuthor', 'targetAuthorNumber', 'targetAuthorUuid', 'targetSentTimestamp'];

export const recordFields: Readonly<Record<string, readonly string[]>> = {
  Envelope:
    'source sourceNumber sourceUuid sourceName sourceDevice timestamp serverReceivedTimestamp serverDeliveredTimestamp dataMessage editMessage storyMessage syncMessage callMessage receiptMessage typingMessage'.split(
      ' ',
    ),
  DataMessage:
    'timestamp message expiresInSeconds isExpirationUpdate viewOnce reaction quote payment mentions previews attachments sticker remoteDelete contacts pollCreate pollVote pollTerminate textStyles groupInfo storyContext pinMessage unpinMessage adminDelete'.split(
      ' ',
    ),
  Quote: ['id', 'author', 'authorNumber', 'authorUuid', 'text', 'mentions', 'attachments', 'textStyles'],
  QuotedAttachment: ['contentType', 'filename', 'thumbnail'],
  Attachment: [
    'contentType',
    'filename',
    'id',
    'size',
    'width',
    'height',
    'caption',
    'uploadTimestamp',
    'isVoiceNote',
  ],
  PollCreate: ['question', 'allowMultiple', 'options'],
  PollVote: ['author', 'authorNumber', 'authorUuid', 'targetSentTimestamp', 'optionIndexes', 'voteCount'],
  PollTerminate: ['targetSentTimestamp'],
  PinMessage: [...target, 'pinDurationSeconds'],
  UnpinMessage: target,
  AdminDelete: target,
  Reaction: [...target, 'emoji', 'isRemove'],
  RemoteDelete: ['timestamp'],
  EditMessage: ['targetSentTimestamp', 'dataMessage'],
  Sticker: ['packId', 'stickerId'],
  SharedContact: ['name', 'avatar', 'phone', 'email', 'address', 'organization'],
  Preview: ['url', 'title', 'description', 'image'],
  Payment: ['note', 'receipt'],
  StoryContext: ['authorNumber', 'authorUuid', 'sentTimestamp'],
  GroupInfo: ['groupId', 'groupName', 'revision', 'type'],
  Mention: ['name', 'number', 'uuid', 'start', 'length'],
};
