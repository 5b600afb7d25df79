import type { ReadInput } from '../read-input.ts';

/** A notification in a shape that signal-cli sends, in our own words, and how Parley reads it; absent: not at all. */
export type SignalInput = {
  readonly name: string;
  /** Where the shape was seen. */
  readonly shape: string;
  readonly frame: Frame;
  readonly read?: ReadInput;
};

export type Fields = Readonly<Record<string, unknown>>;
export type Frame = { readonly account: string; readonly envelope: Fields };

export const botNumber = '+15550100';
export const botAci = '00000000-0000-4000-8000-000000000001';
export const ada = '11111111-1111-4111-8111-111111111111';
export const bea = '22222222-2222-4222-8222-222222222222';
export const group = {
  groupId: Buffer.alloc(32, 7).toString('base64'),
  groupName: 'Allotment',
  revision: 3,
  type: 'DELIVER',
};
export const at = 1_795_776_000_000;

/** An envelope of Ada's phone. */
export const envelope = (payload: Fields): Frame => ({
  account: botNumber,
  envelope: {
    source: ada,
    sourceNumber: null,
    sourceUuid: ada,
    sourceName: 'Ada',
    sourceDevice: 1,
    timestamp: at,
    serverReceivedTimestamp: at + 100,
    serverDeliveredTimestamp: at + 200,
    ...payload,
  },
});

/** Content of a message; nothing is in it unless the fields say otherwise. */
export const content = (fields: Fields): Fields => ({
  timestamp: at,
  message: null,
  expiresInSeconds: 0,
  isExpirationUpdate: false,
  viewOnce: false,
  ...fields,
});

export const data = (fields: Fields): Frame => envelope({ dataMessage: content(fields) });

export const aFile = (id: string, fields: Fields = {}): Fields => ({
  contentType: 'image/jpeg',
  filename: null,
  id,
  size: 1234,
  width: 10,
  height: 10,
  caption: null,
  uploadTimestamp: at - 1000,
  ...fields,
});

/** A reference to a message, as reactions, pins and admins' deletions have it. */
export const target = (author: string | null = bea): Fields => ({
  targetAuthor: author,
  targetAuthorNumber: null,
  targetAuthorUuid: author,
  targetSentTimestamp: at - 9,
});
