/** A message's stored content, and its text for the model. */
import type { AttachmentRef } from '#contracts/attachment.ts';
import {
  type InboundEnvelope,
  type InboundMessage,
  type InboundQuote,
  type InboundWords,
  isTyped,
} from '#contracts/envelope.ts';
import type { Authority } from '#contracts/outcome.ts';
import { type QuotedText, renderInbound, renderOther, renderQuote } from '../replies/untrusted.ts';
import type { InboxContent, IncomingFile } from '../store/base/json.ts';
import { conversationKeyOf, newRowId } from '../store/base/keys.ts';
import { fileLine } from '../store/base/one-line.ts';
import type { Decision, EditDecision, Notice, UnreadEditDecision } from '../store/intake/proposal.ts';
import { fillText } from '../texts/chat-texts.ts';
import { cleanLabel, newDelimiter, wrapUntrusted } from '../texts/untrusted-text.ts';
import type { InboundPolicy } from './inbound-policy.ts';

/** A message without any content, to be completed by the caller. */
export const emptyMessage: InboundMessage = {
  kind: 'message',
  messageId: '' as InboundMessage['messageId'],
  text: '',
  provenance: 'typed',
  attachments: [],
  mentionsBot: false,
  repliesToBot: false,
};

export function contentOf(envelope: InboundEnvelope, message: InboundMessage): InboxContent {
  const { sender, sentAt } = envelope;
  const { quote } = message;
  const unknownFields = unreadFields(message);
  const tail = isTyped(message) ? renderOther(otherIn(message)) : '';
  const text = shownText(message);
  return {
    text,
    prompt: text,
    sender: { id: sender.id, name: sender.name },
    sentAt,
    ...(quote && { lead: renderQuote(quotedIn(quote)) }),
    ...(tail !== '' && { tail }),
    ...(unknownFields.length > 0 && { unknownFields }),
    ...(!isTyped(message) && { provenance: message.provenance }),
    attachments: [...message.attachments, ...quotedFiles(quote)],
  };
}

export function promptOf(
  { timeZone }: Pick<InboundPolicy, 'timeZone'>,
  input: {
    readonly envelope: InboundEnvelope;
    readonly authority: Authority;
    readonly message: InboundMessage;
  },
): string {
  const { envelope, authority, message } = input;
  return renderInbound({
    text: readableWords(message),
    ...otherIn(message),
    sender: { name: envelope.sender.name, authority },
    sentAt: envelope.sentAt,
    isGroup: envelope.chat.kind === 'group',
    ...(message.quote && { quote: quotedIn(message.quote) }),
    ...(!isTyped(message) && { dataAbout: describeData(message) }),
    attachments: [],
    timeZone,
  });
}

function otherIn(content: InboundWords & { readonly attachments?: readonly AttachmentRef[] }) {
  return { described: describedLines(content), unreadFields: unreadFields(content) };
}

function quotedIn(quote: InboundQuote): QuotedText {
  const { author = '', attachments = [] } = quote;
  return { author, text: readableWords(quote), ...otherIn(quote), files: attachments.map(fileLine) };
}

/** The files of a quoted message are fetched with the one that quotes it, and shown as the quoted message's. */
function quotedFiles(quote: InboundQuote | undefined): readonly IncomingFile[] {
  const by = cleanLabel(quote?.author ?? '');
  const of = by === '' ? 'the quoted message' : `the quoted message by ${by}`;
  return (quote?.attachments ?? []).map((file) => ({ ...file, of }));
}

type Origin = Pick<InboundMessage, 'provenance' | 'forwardedFrom'>;

/** Describes the origin of words that aren't the sender's own, for the marks around them. */
function describeData({ provenance, forwardedFrom = '' }: Origin): string {
  switch (provenance) {
    case 'forwarded':
      return `forwarded from ${cleanLabel(forwardedFrom) || 'someone'}`;
    case 'quoted':
      return 'quoted by the sender';
    case 'inline-bot':
      return 'chosen from what an inline bot offered';
    case 'channel-post':
      return `posted in a channel${forwardedFrom === '' ? '' : `, from ${cleanLabel(forwardedFrom)}`}`;
    case 'story':
      return 'about a story';
    case 'automated':
      return 'sent by a program for the sender';
    case 'typed':
    case 'unknown':
      return 'of unknown origin';
    default:
      return provenance satisfies never;
  }
}

type ChangeEvent<Kind> = {
  readonly policy: Pick<InboundPolicy, 'timeZone' | 'texts' | 'groups'>;
  readonly envelope: InboundEnvelope;
  readonly authority: Authority;
  readonly event: Extract<InboundEnvelope['event'], { kind: Kind }>;
};

export function decideEdit({
  policy,
  envelope,
  authority,
  event,
}: ChangeEvent<'edit'>): EditDecision | UnreadEditDecision {
  if (!hasContent(event)) return decideUnreadEdit({ policy, envelope, event });
  const { attachments, provenance } = event;
  const name = nameOf(envelope);
  const promptFor = (origin: Origin) => {
    const { kind: _, ...words } = event;
    return promptOf(policy, {
      envelope,
      authority,
      message: { ...emptyMessage, ...words, attachments: attachments ?? [], ...origin },
    });
  };
  const text = shownText(event);
  const now = [text, ...(attachments ?? []).map(fileLine)].filter((line) => line !== '').join('\n');
  const tail = isTyped(event) ? renderOther(otherIn(event)) : '';
  return {
    kind: 'edit',
    text,
    prompt: promptFor({ provenance }),
    ...(isTyped(event) ? { dataPrompt: promptFor({ provenance: 'unknown' }) } : { provenance }),
    ...(tail !== '' && { tail }),
    ...(attachments && { attachments }),
    note: `${name} edited an earlier message. It now reads:\n${wrapUntrusted(now, `edited by ${name}`, newDelimiter())}`,
    newId: newRowId(),
  };
}

/** An edit without any content that Parley can read changes no words: the earlier ones stay, with a remark. */
function decideUnreadEdit({
  policy,
  envelope,
  event,
}: Omit<ChangeEvent<'edit'>, 'authority'>): UnreadEditDecision {
  const fields = unreadFields(event);
  const about = fields.length === 0 ? '' : ` (unknown content: ${fields.join(', ')})`;
  const remark = `(${nameOf(envelope)} has edited this message since, in a way that Parley can't read${about}. This is the earlier version.)`;
  return {
    kind: 'unread-edit',
    remark,
    note: `${nameOf(envelope)} edited an earlier message in a way that Parley can't read${about}.`,
    ...(fields.length > 0 && {
      notice: unreadNotice(policy, envelope, { fields, messageId: event.messageId, isEdit: true }),
    }),
    newId: newRowId(),
  };
}

type Unread = {
  readonly fields: readonly string[];
  readonly messageId: string;
  readonly isEdit?: true;
};

/** Tells a sender that a message or an edit couldn't be read; once per message. */
export function unreadNotice(
  { texts }: Pick<InboundPolicy, 'texts'>,
  { route }: InboundEnvelope,
  { fields, messageId, isEdit }: Unread,
): Notice {
  const text = isEdit ? texts.editUnread : texts.messageUnread;
  return {
    route,
    text: fillText(text, { kinds: fields.join(', ') }),
    onceKey: `${conversationKeyOf(route)}/${messageId}:unread`,
  };
}

/** Decides about a deleted message. Some networks report that a message is gone, but not who deleted it. */
export function decideDelete({
  envelope,
  event,
}: Omit<ChangeEvent<'delete'>, 'authority' | 'policy'>): Decision {
  return {
    kind: 'delete',
    ...(event.isVouched && { isVouched: true }),
    note: `${nameOf(envelope)} deleted {message}.`,
    route: envelope.route,
  };
}

/** Reactions are remembered even if no unaddressed messages are. */
const minReactions = 10;

export function reactionOf(given: Omit<ChangeEvent<'reaction'>, 'authority'>): Decision {
  const { emoji, isRemoved, messageId } = given.event;
  const verb = isRemoved ? 'removed the reaction' : 'reacted with';
  return remembered(given, { messageId, text: emoji, act: `${verb} ${cleanLabel(emoji) || 'something'} to` });
}

export function actOf(given: Omit<ChangeEvent<'act'>, 'authority'>): Decision {
  const { act, messageId } = given.event;
  return remembered(given, { messageId, text: act, act: cleanLabel(act) });
}

type PersonAct = { readonly messageId: string; readonly text: string; readonly act: string };

/** Says what a person did to a message, for the agent's next turn. */
function remembered(
  { policy, envelope }: Pick<ChangeEvent<'act'>, 'policy' | 'envelope'>,
  { messageId, text, act }: PersonAct,
): Decision {
  const prompt = `${nameOf(envelope)} ${act} {message}.`;
  const note = { kind: 'reaction', of: messageId } as const;
  const content = { ...contentOf(envelope, { ...emptyMessage, text }), prompt, note };
  return { kind: 'reaction', content, limit: Math.max(minReactions, policy.groups.contextLimit) };
}

function nameOf({ sender }: InboundEnvelope): string {
  return cleanLabel(sender.name) || 'Somebody';
}

// Bounds and cleans the content of messages other than written words: lines that describe it, and the names of fields
// that this version doesn't know. Both come from outside and are only ever data.

/** Limits on the lines of one message: a poll, an embed or a checklist has far less. In UTF-16 code units. */
const maxLines = 200;
const maxLineLength = 4096;
const maxLinesLength = 32_768;

/** Returns the lines that describe a message's other content, without empty ones. */
function describedLines({ described = [] }: InboundWords): readonly string[] {
  const lines: string[] = [];
  let room = maxLinesLength;
  for (const line of described.slice(0, maxLines)) {
    if (line.trim() === '' || room === 0) continue;
    const kept = line.slice(0, Math.min(maxLineLength, room)).toWellFormed();
    lines.push(kept);
    room -= kept.length;
  }
  return lines;
}

/** Limits on the names of fields that people, the model and `why` are told. */
const maxFields = 8;
const maxFieldLength = 40;

type Content = InboundWords & { readonly attachments?: readonly AttachmentRef[] };

/** Says whether the message has any content that Parley can read. */
export function hasContent(content: Content): boolean {
  if (content.text.trim() !== '' || (content.attachments ?? []).length > 0) return true;
  return describedLines(content).length > 0;
}

/** Returns the unknown fields of a message that has no other content; empty for any other message. */
export function unreadFields(content: Content): readonly string[] {
  const { unknownFields = [] } = content;
  if (unknownFields.length === 0 || hasContent(content)) return [];
  const names = unknownFields
    .slice(0, maxFields)
    .map((name) => cleanLabel(name.slice(0, 1000)).slice(0, maxFieldLength).toWellFormed());
  const named = [...new Set(names.filter((name) => name !== ''))];
  return named.length === 0 ? ['?'] : named;
}

/** Returns the words as they are read, with their formatting. */
function readableWords({ text, shown = text }: InboundWords): string {
  return shown;
}

/** Returns the content as people see it in lists and on the page. */
export function shownText(content: Content): string {
  const fields = unreadFields(content);
  if (fields.length > 0) return `[${fields.join(', ')}]`;
  return [readableWords(content), ...describedLines(content)].filter((line) => line !== '').join('\n');
}
