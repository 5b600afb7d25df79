import type { Account, Notification, Person, Place, StandingMessage, StoredAttachment } from './types.ts';

type Json = Readonly<Record<string, unknown>>;

/** The payload of an envelope: `{dataMessage: …}`, `{receiptMessage: …}` and so on. */
export type Payload = Json;

export type Sender = { readonly person: Person; readonly device: number };

/** An envelope as signal-cli prints it. `at` is the sender's clock; the server's is assumed to be the same. */
export function notification(account: Account, from: Sender, at: number, payload: Payload): Notification {
  const { number, uuid, name } = from.person;
  return {
    envelope: {
      source: number ?? uuid,
      sourceNumber: number,
      sourceUuid: uuid,
      sourceName: name,
      sourceDevice: from.device,
      timestamp: at,
      serverReceivedTimestamp: at + 11,
      serverDeliveredTimestamp: at + 12,
      ...payload,
    },
    account: account.number,
  };
}

/** Returns the fields that all data messages share: nulls are included, empty lists are absent. */
export function dataMessage(place: Place, at: number, expiresInSeconds: number, fields: Json): Json {
  return {
    timestamp: at,
    message: null,
    expiresInSeconds,
    isExpirationUpdate: false,
    viewOnce: false,
    ...fields,
    ...groupInfo(place, 'DELIVER'),
  };
}

export function groupInfo(place: Place, type: 'DELIVER' | 'UPDATE'): Json {
  if (!('group' in place)) return {};
  const { internalId, name, revision } = place.group;
  return { groupInfo: { groupId: internalId, groupName: name, revision, type } };
}

/** Returns the fields of a data message that contain the content of `message`. */
export function contentFields(
  message: StandingMessage,
  known: (uuid: string) => Person | undefined,
  quoted: StandingMessage | undefined,
): Json {
  const { text, mentions, styles, attachments, sticker } = message;
  const [packId, stickerId] = sticker?.split(':') ?? [];
  return {
    message: text === '' ? null : text,
    ...(message.quote === undefined ? {} : { quote: quoteField(message.quote, known, quoted) }),
    ...list(
      'mentions',
      mentions.map((mention) => ({ ...nameOf(known(mention.uuid)), ...mention })),
    ),
    ...list('attachments', attachments.map(attachmentField)),
    ...(sticker === undefined ? {} : { sticker: { packId, stickerId: Number(stickerId) } }),
    ...list('textStyles', [...styles]),
  };
}

function quoteField(
  quote: NonNullable<StandingMessage['quote']>,
  known: (uuid: string) => Person | undefined,
  quoted: StandingMessage | undefined,
): Json {
  const author = known(quote.authorUuid);
  return {
    id: quote.timestamp,
    author: author?.number ?? quote.authorUuid,
    authorNumber: author?.number ?? null,
    authorUuid: quote.authorUuid,
    text: quote.text,
    ...list(
      'mentions',
      (quoted?.mentions ?? []).map((one) => ({ ...nameOf(known(one.uuid)), ...one })),
    ),
    attachments: (quoted?.attachments ?? []).map(({ contentType, fileName }) => ({
      contentType,
      filename: fileName,
    })),
  };
}

export function reactionField(emoji: string, target: StandingMessage, isRemove: boolean): Json {
  const { number, uuid } = target.from;
  return {
    reaction: {
      emoji,
      targetAuthor: number ?? uuid,
      targetAuthorNumber: number,
      targetAuthorUuid: uuid,
      targetSentTimestamp: target.timestamp,
      isRemove,
    },
  };
}

/** Returns the recipient of a message sent from the account's other device; all null for a group. */
export function destination(place: Place): Json {
  const person = 'person' in place ? place.person : undefined;
  return {
    destination: person === undefined ? null : (person.number ?? person.uuid),
    destinationNumber: person?.number ?? null,
    destinationUuid: person?.uuid ?? null,
  };
}

function attachmentField(file: StoredAttachment): Json {
  const { id, contentType, fileName, bytes } = file;
  const isImage = contentType.startsWith('image/');
  return {
    contentType,
    filename: fileName,
    id,
    size: bytes.length,
    width: isImage ? 640 : null,
    height: isImage ? 480 : null,
    caption: null,
    uploadTimestamp: null,
  };
}

function nameOf(person: Person | undefined): Json {
  return { name: person?.number ?? person?.uuid ?? null, number: person?.number ?? null };
}

function list(field: string, values: readonly unknown[]): Json {
  return values.length === 0 ? {} : { [field]: values };
}
