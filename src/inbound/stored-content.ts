/** A message's stored content, and its text for the model. */
import type { InboundEnvelope, InboundMessage } from '#contracts/envelope.ts';
import type { Authority } from '#contracts/outcome.ts';
import { isTyped } from '#contracts/provenance.ts';
import { renderInbound, renderQuote } from '../replies/untrusted.ts';
import type { InboxContent } from '../store/base/json.ts';
import { newRowId } from '../store/base/row-id.ts';
import type { Decision, EditDecision } from '../store/intake/proposal.ts';
import { cleanLabel } from '../texts/clean-untrusted.ts';
import { newDelimiter, wrapUntrusted } from '../texts/wrap-untrusted.ts';
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
  return {
    text: message.text,
    prompt: message.text,
    sender: { id: sender.id, name: sender.name },
    sentAt,
    ...(message.quote && { lead: renderQuote(message.quote) }),
    ...(!isTyped(message) && { provenance: message.provenance }),
    attachments: message.attachments,
  };
}

type PromptInput = {
  readonly envelope: InboundEnvelope;
  readonly authority: Authority;
  readonly message: InboundMessage;
};

export function promptOf(
  { timeZone }: Pick<InboundPolicy, 'timeZone'>,
  { envelope, authority, message }: PromptInput,
): string {
  return renderInbound({
    text: message.text,
    sender: { name: envelope.sender.name, authority },
    sentAt: envelope.sentAt,
    isGroup: envelope.chat.kind === 'group',
    ...(message.quote && { quote: message.quote }),
    ...(!isTyped(message) && { dataAbout: describeData(message) }),
    attachments: [],
    timeZone,
  });
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
  readonly gate: Pick<InboundPolicy, 'timeZone' | 'notices' | 'groups'>;
  readonly envelope: InboundEnvelope;
  readonly authority: Authority;
  readonly event: Extract<InboundEnvelope['event'], { kind: Kind }>;
};

export function decideEdit({ gate, envelope, authority, event }: ChangeEvent<'edit'>): EditDecision {
  const { text, provenance } = event;
  const name = nameOf(envelope);
  const promptFor = (origin: Origin) =>
    promptOf(gate, { envelope, authority, message: { ...emptyMessage, text, ...origin } });
  return {
    kind: 'edit',
    text,
    prompt: promptFor({ provenance }),
    ...(isTyped(event) ? { dataPrompt: promptFor({ provenance: 'unknown' }) } : { provenance }),
    note: `${name} edited an earlier message. It now reads:\n${wrapUntrusted(text, `edited by ${name}`, newDelimiter())}`,
    newId: newRowId(),
  };
}

/** Decides about a deleted message. Some networks report that a message is gone, but not who deleted it. */
export function decideDelete({
  envelope,
  event,
}: Omit<ChangeEvent<'delete'>, 'authority' | 'gate'>): Decision {
  return {
    kind: 'delete',
    ...(event.isVouched && { isVouched: true }),
    note: `${nameOf(envelope)} deleted {message}.`,
    route: envelope.route,
  };
}

/** Reactions are remembered even if no unaddressed messages are. */
const leastReactions = 10;

export function reactionOf({ gate, envelope, event }: Omit<ChangeEvent<'reaction'>, 'authority'>): Decision {
  const { emoji, isRemoved, messageId } = event;
  const verb = isRemoved ? 'removed the reaction' : 'reacted with';
  const prompt = `${nameOf(envelope)} ${verb} ${cleanLabel(emoji) || 'something'} to {message}.`;
  const note = { kind: 'reaction', of: messageId } as const;
  const content = { ...contentOf(envelope, { ...emptyMessage, text: emoji }), prompt, note };
  return { kind: 'reaction', content, limit: Math.max(leastReactions, gate.groups.contextLimit) };
}

function nameOf({ sender }: InboundEnvelope): string {
  return cleanLabel(sender.name) || 'Somebody';
}
