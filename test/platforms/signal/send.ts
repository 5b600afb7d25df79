import { randomUUID } from 'node:crypto';
import { type Bound, bindBody, type MentionInput, type Shape } from './bind.ts';
import { type Handler, type Incoming, type Platform, type Reply, recipientsIn } from './platform.ts';
import { decodeBase64, placeOf, type RecipientKind, readRecipients } from './recipients.ts';
import { readStyledText } from './styled-text.ts';
import {
  type Account,
  ApiError,
  badRequest,
  type MentionRange,
  type Person,
  type Place,
  type StandingMessage,
  type StoredAttachment,
  type StyleRange,
} from './types.ts';

const shape = {
  number: 'string',
  recipients: 'strings',
  recipient: 'string',
  message: 'string',
  base64_attachments: 'strings',
  sticker: 'string',
  mentions: 'mentions',
  quote_timestamp: 'int',
  quote_author: 'string',
  quote_message: 'string',
  quote_mentions: 'mentions',
  text_mode: 'string',
  edit_timestamp: 'int',
  notify_self: 'bool',
  link_preview: 'preview',
  view_once: 'bool',
} as const satisfies Shape;
type Request = Bound<typeof shape>;
type Content = {
  readonly text: string;
  readonly styles: readonly StyleRange[];
  readonly mentions: readonly MentionRange[];
  readonly attachments: readonly StoredAttachment[];
};
type Failure = { readonly person: Person; readonly reason: string };

/** POST /v2/send. */
export const send: Handler = (platform, call) => {
  const request = bindBody(call.body, shape);
  const { recipients, kind } = checkRequest(request);
  const account = platform.world.account(request.number ?? '');
  const tokens = platform.challenges.get(account.number);
  if (tokens !== undefined) throw rateLimited(platform, account.number, tokens);
  const content = readContent(platform, request);
  const places = recipients.flatMap((one) => placeOfRecipient(platform, account, one, kind));
  const timestamp = platform.world.nextTimestamp();
  const failures = places.flatMap((place) => failuresIn(platform, place, account, call));
  const reached = places.filter((place) => reaches(place, account, failures));
  if (places.length > 0 && reached.length === 0) throw badRequest('Failed to send message');
  for (const place of reached) deliver(platform, { account, place, request, content, timestamp });
  return answer(platform, timestamp, failures);
};

function checkRequest(request: Request): { recipients: readonly string[]; kind: RecipientKind } {
  const recipients = [...(request.recipients ?? []), ...(request.recipient ? [request.recipient] : [])];
  const refuse = (what: string) => badRequest(`Couldn't process request - ${what}`);
  if (recipients.length === 0) throw refuse('please provide at least one recipient');
  if (!request.number) throw refuse('please provide a valid number');
  if (request.sticker && !request.sticker.includes(':'))
    throw refuse('please provide valid sticker delimiter');
  if (request.view_once && !request.base64_attachments?.length)
    throw badRequest("'view_once' can only be set for image attachments!");
  const { link_preview: preview } = request;
  if (preview !== undefined && !preview.url.startsWith('https://'))
    throw badRequest('Link preview URL must start with https://');
  return { recipients, kind: readRecipients(recipients) };
}

function readContent(platform: Platform, request: Request): Content {
  const raw = request.message ?? '';
  const { text, styles, lost } =
    request.text_mode === 'styled'
      ? readStyledText(raw, platform.release)
      : { text: raw, styles: [], lost: [] };
  if (request.text_mode !== undefined && !['normal', 'styled'].includes(request.text_mode))
    platform.note(`text_mode ${request.text_mode} is taken for normal`);
  if (lost.length > 0) platform.note(`markers that never close are swallowed: ${lost.join(' ')}`);
  const attachments = (request.base64_attachments ?? []).map((one) => readAttachment(platform, one));
  if (text === '' && attachments.length === 0 && !request.sticker)
    throw badRequest('No message body or attachments given');
  return { text, styles, attachments, mentions: readMentions(platform, text, request.mentions ?? []) };
}

function readMentions(
  platform: Platform,
  text: string,
  mentions: readonly MentionInput[],
): readonly MentionRange[] {
  return mentions.flatMap(({ start, length, author }) => {
    const person = platform.world.person(author);
    if (start < 0 || length < 1 || start + length > text.length)
      platform.note(`a mention at ${start}+${length} lies outside the text of ${text.length} units`);
    if (person === undefined) platform.note(`nobody is ${author}, who is mentioned`);
    return person === undefined ? [] : [{ uuid: person.uuid, start, length }];
  });
}

/** Raw base64, `data:<mime>;base64,…` or `data:<mime>;filename=<name>;base64,…`. */
function readAttachment(platform: Platform, text: string): StoredAttachment {
  const form = /^data:([^;,]*)(?:;filename=([^;,]*))?;base64,/.exec(text);
  if (form === null && text.startsWith('data:')) throw badRequest('illegal base64 data at input byte 4');
  const bytes = decodeBase64(form === null ? text : text.slice(form[0].length));
  if (bytes === undefined) throw badRequest('illegal base64 data at input byte 0');
  if (bytes.length === 0) platform.note('an attachment is empty');
  return {
    id: randomUUID(),
    contentType: form?.[1] || 'application/octet-stream',
    fileName: form?.[2] ?? null,
    bytes,
  };
}

function placeOfRecipient(
  platform: Platform,
  account: Account,
  recipient: string,
  kind: RecipientKind,
): readonly Place[] {
  const place = placeOf(platform.world, recipient);
  if (place === undefined) {
    // Accepted, but lost: this also happens to a group's id in the form that messages contain.
    platform.note(`${recipient} is nobody here (taken for a ${kind})`);
    return [];
  }
  checkMembership(place, account);
  return [place];
}

/** Refuses what signal-cli refuses: groups that the account isn't in, or may not write to. */
export function checkMembership(place: Place, account: Account): void {
  if (!('group' in place)) return;
  const { group } = place;
  if (!group.members.some(({ uuid }) => uuid === account.uuid))
    throw badRequest(`User is not a member in group: ${group.name} (${group.internalId})`);
  if (group.isAnnouncement && !group.admins.has(account.uuid))
    throw badRequest(`User is not allowed to send message to group: ${group.name} (${group.internalId})`);
}

function failuresIn(platform: Platform, place: Place, account: Account, call: Incoming): readonly Failure[] {
  return recipientsIn(place, account).flatMap((person) => {
    const wanted = call.failing[person.uuid] ?? call.failing[person.number ?? ''];
    const reason = platform.unregistered.has(person.uuid) ? 'UNREGISTERED_FAILURE' : wanted;
    return reason === undefined ? [] : [{ person, reason }];
  });
}

function reaches(place: Place, account: Account, failures: readonly Failure[]): boolean {
  const people = recipientsIn(place, account);
  const failed = (person: Person) => failures.some((one) => one.person.uuid === person.uuid);
  return people.length === 0 || people.some((person) => !failed(person));
}

type Delivery = {
  readonly account: Account;
  readonly place: Place;
  readonly request: Request;
  readonly content: Content;
  readonly timestamp: number;
};

function deliver(platform: Platform, delivery: Delivery): void {
  const { world, people } = platform;
  const { account, place, request, content, timestamp } = delivery;
  if (request.edit_timestamp !== undefined) {
    editMessage(platform, delivery, request.edit_timestamp);
    return;
  }
  const quote = readQuote(platform, delivery);
  const message = world.add(account, place, {
    from: account,
    ...content,
    isByCall: true,
    timestamp,
    ...(request.sticker ? { sticker: request.sticker } : {}),
    ...(quote === undefined ? {} : { quote }),
  });
  platform.afterwards.push(() => {
    people.relays(message);
    confirm(platform, message);
  });
}

function editMessage(platform: Platform, delivery: Delivery, target: number): void {
  const { world, people } = platform;
  const { account, place, content, timestamp } = delivery;
  const message = world.find(account, place, target, account);
  if (message === undefined || message.isDeleted) {
    platform.note(`edit of ${target}, which is no message of ${account.number} there`);
    return;
  }
  world.edit(message, content, timestamp);
  platform.afterwards.push(() => people.relaysEdit(message, timestamp));
}

function readQuote(platform: Platform, { request, account, place }: Delivery) {
  const { quote_timestamp: timestamp, quote_author: author, quote_message: text = '' } = request;
  if (timestamp === undefined) return undefined;
  const person = author === undefined ? undefined : platform.world.person(author);
  if (person === undefined) throw badRequest(`Failed to parse quote author: ${author ?? ''}`);
  if (platform.world.find(account, place, timestamp, person) === undefined)
    platform.note(`quote of ${timestamp} by ${author}, which is no message there`);
  return { timestamp, authorUuid: person.uuid, text };
}

function confirm(platform: Platform, message: StandingMessage): void {
  if (!platform.hasDeliveryReceipts) return;
  const accounts = new Set(platform.world.accounts.map(({ uuid }) => uuid));
  for (const person of recipientsIn(message.place, message.account))
    if (!accounts.has(person.uuid) && !platform.unregistered.has(person.uuid))
      platform.people.receives(person, message, 'delivery');
}

function answer(platform: Platform, timestamp: number, failures: readonly Failure[]): Reply {
  const recipients = failures.map(({ person, reason }) => ({
    number: person.number ?? '',
    uuid: person.uuid,
    reason,
  }));
  const one = { timestamp: String(timestamp) };
  const errors = recipients.length === 0 ? {} : { errors: { recipients } };
  const body = platform.release === 'head' ? [{ ...one, ...errors }] : one;
  return { status: 201, body, timestamp };
}

/** Builds the refusal of a rate limit. In normal and native mode the same comes as prose. */
export function rateLimited(
  platform: Pick<Platform, 'mode'>,
  number: string,
  tokens: readonly string[],
): ApiError {
  const what = 'Failed to send message due to rate limiting';
  if (platform.mode !== 'json-rpc') return badRequest(`${what}\n`);
  const how =
    "Use the attached challenge tokens to lift the rate limit restrictions via the '/v1/accounts/{number}/rate-limit-challenge' endpoint.";
  return new ApiError(429, `${what}. ${how}`, { fields: { challenge_tokens: tokens, account: number } });
}
