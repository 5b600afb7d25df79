/**
 * Decides about one event, in this order: access, rate, command, content. Pure except for the rate counters. The
 * transaction that stores the event decides whether it is a duplicate and what its lane does with it.
 */

import type { RefusalReason } from '#contracts/acceptance.ts';
import {
  type InboundEnvelope,
  type InboundEvent,
  type InboundMessage,
  isTyped,
} from '#contracts/envelope.ts';
import type { AgentId } from '#contracts/ids.ts';
import { type Authority, lowestAuthority } from '#contracts/outcome.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { deciderOf } from '../commands/approve.ts';
import type { Asker, CommandCall, Order } from '../commands/chat-command.ts';
import { parseCommand, stopOrder } from '../commands/list.ts';
import { newApprovalId } from '../commands/one-time-code.ts';
import { start } from '../commands/start.ts';
import { type Identities, joinIdentities, platformRef } from '../sessions/identities.ts';
import { resetBefore, resetPolicyFor } from '../sessions/reset-policy.ts';
import { agentFor } from '../sessions/session-key-of.ts';
import type { Role, SenderRole } from '../store/access/sender-roles.ts';
import type { KeptMessage } from '../store/base/json.ts';
import { conversationKeyOf, type LaneSpec, newRowId } from '../store/base/keys.ts';
import { splitTextName } from '../store/intake/accept-item.ts';
import { fingerprintOf } from '../store/intake/event.ts';
import type { Decision, Proposal } from '../store/intake/proposal.ts';
import type { Bundle, NewItem } from '../store/items/enqueue-item.ts';
import type { ChatLinks } from '../store/links/read-links.ts';
import type { ConversationFacts } from '../store/reads/arrival-facts.ts';
import { fillText } from '../texts/chat-texts.ts';
import { type AccessDecision, authorityOf, authorize, isOwnerBy } from './authorize.ts';
import {
  chosenAgent,
  type InboundPolicy,
  laneAddress,
  type QueuePlace,
  queueLevelsFor,
  queueSettingsFor,
} from './inbound-policy.ts';
import { isCalledBy, passesMentionGate } from './mention-gate.ts';
import { keptEdit, pairingRequest } from './pairing.ts';
import {
  actOf,
  contentOf,
  decideDelete,
  decideEdit,
  hasContent,
  promptOf,
  reactionOf,
  shownText,
  unreadFields,
  unreadNotice,
} from './stored-content.ts';

export type Arrival = {
  readonly envelope: InboundEnvelope;
  readonly facts: ConversationFacts | undefined;
  /** Accounts that are linked in chat with this batch's senders. */
  readonly links: ChatLinks;
  /** The sender's role in the store. */
  readonly role: SenderRole;
  /** Stored roles of all accounts linked with the sender, by `platformRef`. */
  readonly linkedRoles: ReadonlyMap<string, Role>;
  /** The bot's name on this network, for `/stop@name`. */
  readonly botName: string;
  /** The name of the bot account in the configuration. */
  readonly accountName?: string | undefined;
  readonly now: number;
  /** True if it continues a text that the sender's client has split: see `continuesText`. */
  readonly isRest?: boolean;
};

/** A proposal, or a command whose input must be loaded first. */
export type ProposeResult =
  | { readonly kind: 'proposal'; readonly proposal: Proposal }
  | { readonly kind: 'command'; readonly command: CommandArrival };

export type CommandArrival = {
  readonly order: Order;
  readonly call: CommandCall;
  /** The event itself; the command provides its decision. */
  readonly event: Omit<Proposal, 'decision'>;
};

export function propose(policy: InboundPolicy, arrival: Arrival): ProposeResult {
  const { envelope } = arrival;
  const event = eventOf(arrival);
  const asProposal = proposalOf(event);
  if (envelope.event.kind === 'button') return asProposal(proposePress(policy, arrival, envelope.event.data));
  const access = authorizeMoved(policy, arrival);
  if (access.kind === 'ignored') return asProposal({ kind: 'ignore', reason: access.reason });
  if (access.kind === 'refused') {
    const command = readCommandOfOwner(policy, arrival, access.reason);
    return command ? { kind: 'command', command } : asProposal(refusal(policy, arrival, access.reason));
  }
  const { authority } = access;

  switch (envelope.event.kind) {
    case 'message':
      return proposeMessage(policy, { arrival, event, authority, message: envelope.event });
    case 'edit':
      return asProposal(decideEdit({ policy, envelope, authority, event: envelope.event }));
    case 'delete':
      return asProposal(decideDelete({ envelope, event: envelope.event }));
    case 'reaction':
      return asProposal(reactionOf({ policy, envelope, event: envelope.event }));
    case 'act':
      return asProposal(actOf({ policy, envelope, event: envelope.event }));
    case 'stop': {
      const command = readCommand(policy, { arrival, event, authority });
      return typeof command === 'object'
        ? { kind: 'command', command }
        : asProposal({ kind: 'ignore', reason: 'empty' });
    }
    case 'migrated': {
      const { to } = envelope.event;
      const toKey = conversationKeyOf({ ...envelope.route, conversation: to });
      return asProposal({ kind: 'migrate', from: envelope.route.conversation, to, toKey });
    }
    case 'membership':
      return asProposal({ kind: 'membership', isMember: envelope.event.isMember });
    case 'unsupported':
      return asProposal({ kind: 'refuse', reason: 'unsupported-event' });
    default:
      return envelope.event satisfies never;
  }
}

function proposalOf(event: Omit<Proposal, 'decision'>) {
  return (decision: Decision): ProposeResult => ({ kind: 'proposal', proposal: { ...event, decision } });
}

/** Authorizes an event. A group whose id has changed may be listed under its first or its current id. */
function authorizeMoved(
  { access: accessPolicy }: InboundPolicy,
  { envelope, facts, role }: Arrival,
): AccessDecision {
  const place = { ...canonical(envelope, facts), role, isAdmitted: facts?.isAdmitted };
  const access = authorize(place, accessPolicy);
  const isUnnamed = access.kind === 'refused' && access.reason === 'group-not-allowed';
  return isUnnamed ? authorize({ ...place, route: envelope.route }, accessPolicy) : access;
}

/**
 * A button press counts by the person's rights, wherever the button is, even in a group that isn't answered. A press by
 * anybody without them changes nothing, and they learn the state of the question.
 */
function proposePress(policy: InboundPolicy, arrival: Arrival, data: string): Decision {
  const { envelope, role } = arrival;
  const { route, sender } = envelope;
  if (sender.isSelf) return { kind: 'ignore', reason: 'own-message' };
  if (sender.isBot) return { kind: 'ignore', reason: 'bot-message' };
  const isOwner = isOwnerBy({ route, sender, role }, policy.access);
  const access = authorizeMoved(policy, arrival);
  const authority = access.kind === 'allowed' ? access.authority : undefined;
  const by = deciderOf({ envelope, identities: identitiesOf(policy, arrival), authority });
  return { kind: 'press', data, by: { ...by, isOwner } };
}

/** Reads an owner's command in a group that isn't answered: they may still decide whether it should be. */
function readCommandOfOwner(
  policy: InboundPolicy,
  arrival: Arrival,
  reason: RefusalReason,
): CommandArrival | undefined {
  const { envelope, role } = arrival;
  if (reason !== 'group-not-allowed' || !isOwnerBy({ ...envelope, role }, policy.access)) return undefined;
  const command = readCommand(policy, { arrival, event: eventOf(arrival), authority: 'owner' });
  return typeof command === 'object' && command.order.command.isForAnyPlace ? command : undefined;
}

type MessageEvent = {
  readonly arrival: Arrival;
  readonly event: Omit<Proposal, 'decision'>;
  readonly authority: Authority;
  readonly message: InboundMessage;
};

function proposeMessage(
  policy: InboundPolicy,
  { arrival, event, authority, message }: MessageEvent,
): ProposeResult {
  const { envelope, now } = arrival;
  const { route } = envelope;
  const asProposal = proposalOf(event);
  const [sender, at] = countedAs(envelope, now);
  // Messages between people in a group are counted separately, without a notice.
  const isHeard = isAddressed(policy, arrival, message);
  const counted = isHeard ? sender : `${sender}, unaddressed`;
  const rate = policy.rateLimit.takeOnce(`${route.account}:${envelope.eventKey}`, counted, at);
  if (rate.kind === 'exceeded') {
    const seconds = Math.ceil(rate.retryAfterMs / 1000);
    const text = fillText(policy.texts.rateLimited, { seconds });
    return asProposal({
      kind: 'refuse',
      reason: 'rate-limited',
      ...(isHeard && rate.isFirst && { notice: { route, text } }),
    });
  }
  const command = readCommand(policy, { arrival, event, authority });
  if (command === 'for-other-bot') return asProposal({ kind: 'ignore', reason: 'for-other-bot' });
  if (command) return { kind: 'command', command };
  const fields = unreadFields(message);
  if (fields.length === 0 && !hasContent(message)) return asProposal({ kind: 'ignore', reason: 'empty' });
  const item = newItem(policy, { arrival, event, authority, message });
  if (fields.length === 0) return asProposal({ kind: 'accept', item });
  const notice = unreadNotice(policy, envelope, { fields, messageId: message.messageId });
  return asProposal({ kind: 'accept', item, notice });
}

function isAddressed(policy: InboundPolicy, arrival: Arrival, message: InboundMessage): boolean {
  if (arrival.envelope.chat.kind === 'dm' || isCalled(policy, arrival, message)) return true;
  return readOrder(policy, message, { name: arrival.botName }) !== undefined;
}

/** A message older than this, ms, waited while Parley wasn't running. */
const backlogAfterMs = 60_000;

/**
 * Returns for whom and when a message counts: by the time a server received it, never by the sender's clock. A backlog
 * from while Parley wasn't running is no flood; it is read one conversation after another, so each has its own count.
 */
function countedAs(
  { route, sender, receivedAt }: InboundEnvelope,
  now: number,
): [sender: string, at: number] {
  const at = Math.min(now, receivedAt ?? now);
  const who = `${route.channel}:${sender.id}`;
  return [now - at > backlogAfterMs ? `${who}@${route.conversation}` : who, at];
}

/** Returns the command that the sender has typed; undefined for anything else. */
function readCommand(
  policy: InboundPolicy,
  { arrival, event, authority }: Omit<MessageEvent, 'message'>,
): CommandArrival | 'for-other-bot' | undefined {
  const { envelope, facts, botName, accountName, now, isRest } = arrival;
  const { chat, sender } = envelope;
  const typed = isRest ? undefined : readOrder(policy, envelope.event, { name: botName });
  if (!typed) return undefined;
  if (chat.kind === 'group' && !isForUs(typed, envelope.event)) return 'for-other-bot';
  const asker: Asker = { chat: chat.kind, authority, isAdmin: sender.isAdmin };
  const right = typed.right(asker);
  const order = right === 'denied' ? typed.command.deny() : typed;
  const place = canonical(envelope, facts);
  const lane = laneOf(policy, arrival);
  const identities = identitiesOf(policy, arrival);
  const { conversationKey } = event;
  const queueLevels = queueLevelsFor(policy, queuePlaceOf(arrival));
  const known = { envelope, place, conversationKey, lane, authority, right, identities, queueLevels };
  const agentOtherwise = agentWithoutOwn(policy, arrival);
  return { order, call: { ...known, agentOtherwise, botName, accountName, now }, event };
}

/**
 * In a group with several bots, a command unknown to this one belongs to another, unless the message calls this bot.
 */
function isForUs({ inGroups }: Order, event: InboundEnvelope['event']): boolean {
  if (inGroups === undefined) return true;
  return inGroups === 'called' && event.kind === 'message' && (event.mentionsBot || event.repliesToBot);
}

function newItem(policy: InboundPolicy, { arrival, authority, message }: MessageEvent): NewItem {
  const { envelope } = arrival;
  const bundle = bundleOf(envelope, message, policy.joinMs);
  return {
    id: newRowId(),
    kind: 'message',
    lane: laneOf(policy, arrival),
    route: envelope.route,
    authority: turnAuthority(policy, arrival, authority),
    content: { ...contentOf(envelope, message), prompt: promptOf(policy, { envelope, authority, message }) },
    ...(bundle && { bundle }),
    ...(!message.startsNoRun && { joinMs: policy.joinMs }),
    passesGate: !message.startsNoRun && (envelope.chat.kind === 'dm' || isCalled(policy, arrival, message)),
    contextLimit: Math.max(message.startsNoRun ? 1 : 0, policy.groups.contextLimit),
  };
}

function isCalled(policy: InboundPolicy, { envelope, facts }: Arrival, message: InboundMessage): boolean {
  const refs = [canonical(envelope, facts), envelope].map(({ route }) =>
    platformRef(route.channel, route.conversation),
  );
  const ref = refs.find((one) => Object.hasOwn(policy.groupSettings, one));
  const ofGroup = ref === undefined ? undefined : policy.groupSettings[ref]?.requireMention;
  return passesMentionGate(message, {
    requireMention: ofGroup ?? policy.groups.requireMention,
    patterns: policy.mentionPatterns,
    activation: facts?.activation,
  });
}

function bundleOf(envelope: InboundEnvelope, message: InboundMessage, windowMs: number): Bundle | undefined {
  if (message.album !== undefined) return { name: `album:${message.album}`, windowMs, isOneMessage: true };
  return message.mayContinue ? { name: splitTextName(envelope.sender.id), windowMs } : undefined;
}

/**
 * In a conversation shared by accounts linked in chat, the model reads text of all of them, so a turn has the rights of
 * the least trusted one. (A command has the rights of the account it came from, and links in the configuration were
 * made by the owner.)
 */
function turnAuthority(policy: InboundPolicy, arrival: Arrival, own: Authority): Authority {
  const { chat, route, sender } = arrival.envelope;
  const identities = identitiesOf(policy, arrival);
  const identity = chat.kind === 'dm' ? identities.get(platformRef(route.channel, sender.id)) : undefined;
  if (identity === undefined) return own;
  const linked = identities.accountsOf(identity).filter(({ source }) => source === 'chat');
  return linked.reduce(
    (least, { ref }) => lowestAuthority(least, authorityOf(ref, policy.access, arrival.linkedRoles.get(ref))),
    own,
  );
}

function identitiesOf(policy: InboundPolicy, { links }: Pick<Arrival, 'links'>): Identities {
  return joinIdentities(policy.identityLinks, links);
}

/** Returns the lane that the message enters. */
export function laneOf(policy: InboundPolicy, arrival: Arrival): LaneSpec {
  const { envelope, facts, now } = arrival;
  const place = canonical(envelope, facts);
  const { route, chat } = place;
  const event = { ...place, accountName: arrival.accountName };
  const chosen = chosenAgent(policy, route.thread, facts?.bindings ?? []);
  const { agent, laneKey } = laneAddress(policy, event, identitiesOf(policy, arrival), chosen);
  const type = route.thread === undefined ? chat.kind : 'thread';
  const reset = resetPolicyFor(policy.reset, { type, channel: route.channel });
  const before = resetBefore({ policy: reset, now, timeZone: policy.timeZone });
  return {
    key: laneKey,
    class: 'main',
    agentId: agent,
    chatKind: chat.kind,
    settings: queueSettingsFor(policy, queuePlaceOf(arrival)),
    newSessionId: newRowId(),
    ...(before !== undefined && { resetBefore: before }),
  };
}

/** Returns the agent that would answer if none were chosen for this very place. */
function agentWithoutOwn(policy: InboundPolicy, { envelope, facts, accountName }: Arrival): AgentId {
  const { thread } = envelope.route;
  const others = (facts?.bindings ?? []).filter((each) => each.thread !== (thread ?? ''));
  const event = { ...canonical(envelope, facts), accountName };
  return chosenAgent(policy, thread, others) ?? agentFor(event, policy.bindings, policy.defaultAgent);
}

function queuePlaceOf({ envelope: { route, chat }, facts }: Arrival): QueuePlace {
  const { channel, conversation } = route;
  return { channel, conversation, formerly: facts?.canonicalId, kind: chat.kind };
}

/** Returns the event under the conversation id by which its session and access are known. */
function canonical(envelope: InboundEnvelope, facts: ConversationFacts | undefined): InboundEnvelope {
  if (facts?.canonicalId === undefined) return envelope;
  const conversation = facts.canonicalId as ReplyRoute['conversation'];
  return { ...envelope, route: { ...envelope.route, conversation } };
}

function refusal(policy: InboundPolicy, arrival: Arrival, reason: RefusalReason): Decision {
  const { envelope, role, now } = arrival;
  const { route, sender, event } = envelope;
  // Only an owner who speaks to the bot or adds it is asked; for anybody else such a group stays silent.
  if (
    reason === 'group-not-allowed' &&
    isOwnerBy({ route, sender, role }, policy.access) &&
    isCalledBy(event)
  ) {
    const kept =
      event.kind === 'message' ? keptMessage(policy, { arrival, message: event }, 'owner') : undefined;
    const mention = kept && { ...kept, senderId: sender.id };
    return { kind: 'ask-group', request: { id: newApprovalId(), route, kept: mention } };
  }
  const mayBeKept = reason === 'dm-not-paired' || reason === 'group-not-allowed';
  if (mayBeKept && event.kind === 'delete') return { kind: 'refuse', reason, kept: 'deleted' };
  if (mayBeKept && event.kind === 'edit') {
    const edit = decideEdit({ policy, envelope, authority: 'member', event });
    return { kind: 'refuse', reason, ...(edit.kind === 'edit' && { kept: keptEdit(edit) }) };
  }
  // A sender without an id can't be notified, and nothing could be done for them.
  if (event.kind !== 'message' || sender.id === '' || envelope.chat.kind !== 'dm')
    return { kind: 'refuse', reason };
  const typed = readOrder(policy, event, { name: arrival.botName });
  const isStart = typed?.command.name === start.name && isWithinRate(policy, envelope, now);
  if (reason === 'dm-not-paired') {
    const message = keptMessage(policy, { arrival, message: event }, 'member');
    return pairingRequest(policy, envelope, { message, isStart });
  }
  const id = platformRef(route.channel, sender.id);
  const text =
    reason === 'dm-disabled' ? policy.texts.dmDisabled : fillText(policy.texts.dmNotAllowed, { id });
  const isReported = isStart || reason === 'dm-not-allowed';
  const once = isStart ? {} : { onceKey: `${id}:not-allowed` };
  return { kind: 'refuse', reason, ...(isReported && { notice: { route, text, ...once } }) };
}

/**
 * Builds the message that enters its lane once its sender or its group is admitted; rights are decided then. Undefined
 * for a command, and where there is nothing to answer.
 */
function keptMessage(
  policy: InboundPolicy,
  { arrival, message }: Pick<MessageEvent, 'arrival' | 'message'>,
  authority: Authority,
): KeptMessage | undefined {
  if (!hasContent(message) || readOrder(policy, message, { name: arrival.botName }) !== undefined)
    return undefined;
  const event = eventOf(arrival);
  const { id, lane, route, content } = newItem(policy, { arrival, event, authority, message });
  return { id, lane, route, content, eventKey: event.eventKey, messageId: message.messageId };
}

function isWithinRate(policy: InboundPolicy, envelope: InboundEnvelope, now: number): boolean {
  const key = `${envelope.route.account}:${envelope.eventKey}`;
  return policy.rateLimit.takeOnce(key, ...countedAs(envelope, now)).kind !== 'exceeded';
}

type ArrivingEvent = { readonly envelope: InboundEnvelope; readonly role: SenderRole };

/** Returns the event as the ledger records it, whatever is decided about it. */
function eventOf({ envelope, role }: ArrivingEvent): Omit<Proposal, 'decision'> {
  const { event, route, sender, eventKey } = envelope;
  const base = {
    eventKey,
    kind: event.kind,
    conversationKey: conversationKeyOf(route),
    senderId: sender.id,
    role,
  };
  const named = 'messageId' in event && event.messageId !== undefined ? { messageId: event.messageId } : {};
  if (event.kind === 'unsupported') return { ...base, ...named, detail: event.name };
  if (event.kind !== 'message' && event.kind !== 'edit') return { ...base, ...named };
  const { sentAt } = envelope;
  const fields = unreadFields(event);
  const fingerprint = fingerprintOf({ eventKey, sentAt, text: shownText(event) });
  return { ...base, ...named, fingerprint, ...(fields.length > 0 && { detail: fields.join(', ') }) };
}

// The one rule about whose words an event carries: only words typed by its sender can be a command or call the bot by
// name. Everything else is data, which the model may read and nothing obeys. Nothing else in intake turns an event
// into a command.

/** Returns the command that an event gives; undefined if it is none, whatever it looks like. */
function readOrder(
  policy: InboundPolicy,
  event: InboundEvent,
  bot: { readonly name?: string },
): Order | undefined {
  if (event.kind === 'stop') return stopOrder();
  return event.kind === 'message' && isTyped(event)
    ? parseCommand(event.text, bot, policy.pluginCommands)
    : undefined;
}
