/**
 * What the door makes of one event, in this order: access, rate, command, content. Pure but for the
 * counters of rate and loops; whether the event is a duplicate and what its lane makes of it is decided
 * in the transaction that stores it.
 */
import type { InboundEnvelope, InboundMessage } from '#contracts/envelope.ts';
import type { Authority } from '#contracts/outcome.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { fillNotice } from '../replies/notices.ts';
import { renderInbound } from '../replies/untrusted.ts';
import { platformRef } from '../sessions/platform-ref.ts';
import { resetBefore, resetPolicyFor } from '../sessions/reset-policy.ts';
import { agentFor } from '../sessions/routing.ts';
import { sessionKeyOf } from '../sessions/session-key-of.ts';
import { conversationKeyOf } from '../store/conversation-key.ts';
import { splitTextName } from '../store/intake/accept-item.ts';
import type { ConversationFacts } from '../store/intake/conversation-facts.ts';
import type { Bundle, Decision, LaneSpec, NewItem, Proposal } from '../store/intake/proposal.ts';
import type { InboxContent } from '../store/json.ts';
import { names } from './access-policy.ts';
import { authorise } from './authorise.ts';
import { commandRight, type ParsedCommand, parseCommand } from './commands.ts';
import { type Gate, queueSettingsFor } from './gate.ts';
import { passesMentionGate } from './mention-gate.ts';

export type Arrival = {
  readonly envelope: InboundEnvelope;
  readonly facts: ConversationFacts | undefined;
  /** The bot's name on this network, for `/stop@name`. */
  readonly botName: string;
  readonly now: number;
};

/** A proposal, or a command that needs to be carried out to know its answer. */
export type Proposed =
  | { readonly kind: 'proposal'; readonly proposal: Proposal }
  | { readonly kind: 'command'; readonly command: CommandArrival };

export type CommandArrival = {
  readonly parsed: ParsedCommand;
  readonly right: 'allowed' | 'own-run';
  readonly lane: LaneSpec;
  readonly authority: Authority;
  readonly arrival: Arrival;
  /** The event itself; the command's decision takes the place of its own. */
  readonly event: Omit<Proposal, 'decision'>;
};

export function propose(gate: Gate, arrival: Arrival): Proposed {
  const { envelope, facts } = arrival;
  const event = eventOf(envelope);
  const asProposal = (decision: Decision): Proposed => ({
    kind: 'proposal',
    proposal: { ...event, decision },
  });

  const access = authorise(canonical(envelope, facts), gate.access);
  if (access.kind === 'ignored') return asProposal({ kind: 'ignore', reason: access.reason });
  if (access.kind === 'refused') return asProposal(refusal(gate, envelope, access.reason));
  const { authority } = access;

  switch (envelope.event.kind) {
    case 'message':
      return proposeMessage(gate, { arrival, event, authority, message: envelope.event });
    case 'edit': {
      const { text } = envelope.event;
      const prompt = promptOf(gate, { envelope, authority, message: { ...plain, text } });
      return asProposal({ kind: 'edit', text, prompt, newId: crypto.randomUUID() });
    }
    case 'delete':
      return asProposal({ kind: 'delete', offer: { route: envelope.route, text: gate.notices.stopOffer } });
    case 'reaction': {
      const { emoji, isRemoved, messageId } = envelope.event;
      const verb = isRemoved ? 'took back the reaction' : 'reacted with';
      const prompt = `${envelope.sender.name} ${verb} ${emoji} to a message.`;
      const note = { kind: 'reaction', of: messageId } as const;
      const content = { ...contentOf(envelope, { ...plain, text: emoji }), prompt, note };
      return asProposal({ kind: 'reaction', content, limit: gate.groups.contextLimit });
    }
    case 'stop': {
      const parsed = parseCommand('/stop', { name: arrival.botName });
      if (!parsed) return asProposal({ kind: 'ignore', reason: 'empty' });
      return {
        kind: 'command',
        command: { parsed, right: 'own-run', lane: laneOf(gate, arrival), authority, arrival, event },
      };
    }
    case 'migrated': {
      const { to } = envelope.event;
      const toKey = conversationKeyOf({ ...envelope.route, conversation: to });
      return asProposal({ kind: 'migrate', from: envelope.route.conversation, to, toKey });
    }
    case 'membership':
      return asProposal({ kind: 'membership', isMember: envelope.event.isMember });
    case 'button':
    case 'unsupported':
      return asProposal({ kind: 'refuse', reason: 'unsupported-event' });
    default:
      return envelope.event satisfies never;
  }
}

type Messaging = {
  readonly arrival: Arrival;
  readonly event: Omit<Proposal, 'decision'>;
  readonly authority: Authority;
  readonly message: InboundMessage;
};

function proposeMessage(gate: Gate, { arrival, event, authority, message }: Messaging): Proposed {
  const { envelope, botName, now } = arrival;
  const { route, chat, sender } = envelope;
  const asProposal = (decision: Decision): Proposed => ({
    kind: 'proposal',
    proposal: { ...event, decision },
  });

  // By the time it was sent: what piled up while Parley was away is no flood.
  const at = Math.min(now, envelope.sentAt);
  const rate = gate.rateLimit.takeOnce(
    `${route.account}:${envelope.eventKey}`,
    `${route.channel}:${sender.id}`,
    at,
  );
  if (rate.kind === 'exceeded') {
    const seconds = Math.ceil(rate.retryAfterMs / 1000);
    const text = fillNotice(gate.notices.rateLimited, { seconds });
    return asProposal({
      kind: 'refuse',
      reason: 'rate-limited',
      ...(rate.isFirst && { notice: { route, text } }),
    });
  }
  const parsed = parseCommand(message.text, { name: botName });
  const right = parsed && commandRight(parsed, { chat: chat.kind, authority, isAdmin: sender.isAdmin });
  if (parsed && right && right !== 'denied') {
    return {
      kind: 'command',
      command: { parsed, right, lane: laneOf(gate, arrival), authority, arrival, event },
    };
  }
  if (message.text.trim() === '' && message.attachments.length === 0)
    return asProposal({ kind: 'ignore', reason: 'empty' });
  return asProposal({ kind: 'accept', item: newItem(gate, { arrival, event, authority, message }) });
}

function newItem(gate: Gate, { arrival, authority, message }: Messaging): NewItem {
  const { envelope } = arrival;
  const { notices } = gate;
  const bundle = bundleOf(envelope, message, gate.joinMs);
  return {
    id: crypto.randomUUID(),
    kind: 'message',
    lane: laneOf(gate, arrival),
    route: envelope.route,
    authority,
    content: { ...contentOf(envelope, message), prompt: promptOf(gate, { envelope, authority, message }) },
    ...(bundle && { bundle }),
    isGated: envelope.chat.kind === 'dm' || isCalled(gate, arrival, message),
    contextLimit: gate.groups.contextLimit,
    overflow: {
      summarized: fillNotice(notices.queueSummarised, { count: 1 }),
      dropped: notices.queueDroppedOld,
      refused: fillNotice(notices.queueFull, { waiting: laneOf(gate, arrival).settings.cap }),
    },
  };
}

/** The command as an item of its lane, in its order: `/new` and `/reset`. */
export function laneCommand(gate: Gate, command: CommandArrival): Decision {
  const { arrival, lane, authority } = command;
  const { envelope } = arrival;
  const text = envelope.event.kind === 'message' ? envelope.event.text : '';
  const content: InboxContent = {
    ...contentOf(envelope, { ...plain, text }),
    command: { name: 'new', reply: gate.notices.newSession },
  };
  const overflow = { summarized: '', dropped: '', refused: '' };
  const item: NewItem = {
    id: crypto.randomUUID(),
    kind: 'command',
    lane,
    route: envelope.route,
    authority,
    content,
    isGated: true,
    contextLimit: 0,
    overflow,
  };
  return { kind: 'accept', item };
}

function isCalled(gate: Gate, { envelope, facts }: Arrival, message: InboundMessage): boolean {
  const { route } = canonical(envelope, facts);
  const ref = platformRef(route.channel, route.conversation);
  const ofGroup = Object.hasOwn(gate.groupSettings, ref)
    ? gate.groupSettings[ref]?.requireMention
    : undefined;
  return passesMentionGate(message, {
    requireMention: ofGroup ?? gate.groups.requireMention,
    patterns: gate.mentionPatterns,
    activation: facts?.activation,
  });
}

function bundleOf(envelope: InboundEnvelope, message: InboundMessage, windowMs: number): Bundle | undefined {
  if (message.album !== undefined) return { name: `album:${message.album}`, windowMs };
  return message.mayContinue ? { name: splitTextName(envelope.sender.id), windowMs } : undefined;
}

function laneOf(gate: Gate, { envelope, facts, now }: Arrival): LaneSpec {
  const place = canonical(envelope, facts);
  const { route, chat } = place;
  const agent = agentFor(place, gate.bindings, gate.defaultAgent);
  const type = route.thread === undefined ? chat.kind : 'thread';
  const policy = resetPolicyFor(gate.reset, { type, channel: route.channel });
  const before = resetBefore({ policy, now, timeZone: gate.timeZone });
  return {
    key: sessionKeyOf(place, { agent, dmScope: gate.dmScope, identityLinks: gate.identityLinks }),
    class: 'main',
    agentId: agent,
    chatKind: chat.kind,
    settings: queueSettingsFor(gate, {
      channel: route.channel,
      conversation: route.conversation,
      kind: chat.kind,
    }),
    newSessionId: crypto.randomUUID(),
    ...(before !== undefined && { resetBefore: before }),
  };
}

/** The event under the conversation id that its session and its access are known by. */
function canonical(envelope: InboundEnvelope, facts: ConversationFacts | undefined): InboundEnvelope {
  if (facts?.canonicalId === undefined) return envelope;
  const conversation = facts.canonicalId as ReplyRoute['conversation'];
  return { ...envelope, route: { ...envelope.route, conversation } };
}

function refusal(
  gate: Gate,
  envelope: InboundEnvelope,
  reason: Extract<Decision, { kind: 'refuse' }>['reason'],
): Decision {
  const { route, sender, event } = envelope;
  if (event.kind !== 'message') return { kind: 'refuse', reason };
  const notice = (template: string, id: string): Decision => {
    const text = fillNotice(template, { id });
    return { kind: 'refuse', reason, notice: { route, text, onceKey: `${id}:not-allowed` } };
  };
  if (reason === 'dm-not-allowed' && envelope.chat.kind === 'dm')
    return notice(gate.notices.dmNotAllowed, platformRef(route.channel, sender.id));
  // Only an owner who speaks to the bot is told: to anybody else a group that is not answered is silent.
  const isAsked = event.mentionsBot || event.repliesToBot;
  if (reason === 'group-not-allowed' && isAsked && names(gate.access.owners, route.channel, sender.id))
    return notice(gate.notices.groupNotAllowed, platformRef(route.channel, route.conversation));
  return { kind: 'refuse', reason };
}

const plain: InboundMessage = {
  kind: 'message',
  messageId: '' as InboundMessage['messageId'],
  text: '',
  attachments: [],
  mentionsBot: false,
  repliesToBot: false,
};

function contentOf(envelope: InboundEnvelope, message: InboundMessage): InboxContent {
  const { sender, sentAt } = envelope;
  return {
    text: message.text,
    prompt: message.text,
    sender: { id: sender.id, name: sender.name },
    sentAt,
    ...(message.quote && { quote: message.quote }),
    ...(message.forwardedFrom !== undefined && { forwardedFrom: message.forwardedFrom }),
    attachments: message.attachments,
  };
}

function promptOf(
  gate: Gate,
  {
    envelope,
    authority,
    message,
  }: { envelope: InboundEnvelope; authority: Authority; message: InboundMessage },
): string {
  return renderInbound({
    text: message.text,
    sender: { name: envelope.sender.name, authority },
    sentAt: envelope.sentAt,
    isGroup: envelope.chat.kind === 'group',
    ...(message.quote && { quote: message.quote }),
    ...(message.forwardedFrom !== undefined && { forwardedFrom: message.forwardedFrom }),
    attachments: [],
    timeZone: gate.timeZone,
  });
}

function eventOf(envelope: InboundEnvelope): Omit<Proposal, 'decision'> {
  const { event, route, sender, eventKey } = envelope;
  const base = { eventKey, kind: event.kind, conversationKey: conversationKeyOf(route), senderId: sender.id };
  return 'messageId' in event ? { ...base, messageId: event.messageId } : base;
}
