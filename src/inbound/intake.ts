import { clampRemote, remoteTime } from '#channel-kit/remote-number.ts';
import { createYielder } from '#channel-kit/take-turns.ts';
import type { Acceptance } from '#contracts/acceptance.ts';
import type { InboundBatch, Intake } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { hasCode, isStoreAway, ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { AskedCommand } from '#contracts/outbound.ts';
import type { Probe } from '#contracts/probe.ts';
import type { CommandDeps } from '../commands/chat-command.ts';
import type { Hooks } from '../hooks/hooks.ts';
import type { Reservation } from '../queue/lane-workers.ts';
import { platformRef } from '../sessions/identities.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { conversationKeyOf, newRowId, routeOfKey } from '../store/base/keys.ts';
import { acceptBatch } from '../store/intake/accept-batch.ts';
import { readSplitText } from '../store/intake/accept-item.ts';
import { withCause } from '../store/intake/event.ts';
import type { AcceptInput, Decision, Proposal } from '../store/intake/proposal.ts';
import type { NewItem } from '../store/items/enqueue-item.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { readArrivalFacts } from '../store/reads/arrival-facts.ts';
import { type MessagePlace, readOwnMessages } from '../store/reads/own-messages.ts';
import type { InboundPolicy } from './inbound-policy.ts';
import { askHooks, tellHooks } from './message-hooks.ts';
import { type Arrival, type CommandArrival, laneOf, type ProposeResult, propose } from './propose.ts';
import { contentOf, emptyMessage } from './stored-content.ts';

export type InboundDeps = {
  readonly store: Store;
  readonly policy: InboundPolicy;
  readonly commands: Omit<CommandDeps, 'store' | 'policy'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  readonly hooks?: Hooks;
  /** Counts the decisions once they are stored. */
  readonly meters?: { received(channel: string, acceptances: readonly Acceptance[]): void };
  /** Dispatches the commit's effects. Never waits, never throws. */
  start(effects: Effects): void;
  /** Reserves slots for the lanes of the class that a commit may make due immediately; undefined if none is free. */
  reserve(laneClass: string, most: number): Reservation | undefined;
  /** False while the disk is too full to accept anything. */
  hasSpace(): boolean;
};

/** The receiving account, and the lease that proves its right to receive. */
export type IntakeAccount = {
  readonly account: string;
  readonly epoch: number;
  readonly holder: string;
  /** Returns the name by which commands currently address the account. */
  botName(): string;
  /** The name of the bot account in the configuration, when it has one. */
  readonly accountName?: string | undefined;
};

/** If a sender is approved and revoked more often than this, the batch must wait until the platform repeats it. */
const maxDecisions = 5;

/** Raw events are stored up to this length, UTF-16 units. */
const maxRaw = 65_536;

/**
 * Performs steps 1 to 4, from platform event to stored row. Resolves after the commit; after a rejection, no further
 * event may be acknowledged.
 */
export function createIntake(deps: InboundDeps, receiving: IntakeAccount): Pick<Intake, 'accept'> {
  return {
    accept: async (batch) => {
      deps.probe.reach('received');
      if (!deps.hasSpace()) {
        throw new ParleyError(
          'store_full',
          'The disk is almost full, so no messages are accepted; free some space.',
          { retry: { kind: 'later' } },
        );
      }
      const acceptances: Acceptance[] = [];
      const now = deps.clock.now();
      const slices = sliceAtChanges(batch.events.map((one) => withSaneTimes(one, now)));
      for (const [index, events] of slices.entries()) {
        const isLast = index === slices.length - 1;
        const unreadable = isLast
          ? (batch.unreadable ?? []).map((one) => unreadableProposal(receiving, one))
          : [];
        const progress = isLast ? progressOf(batch) : {};
        acceptances.push(...(await acceptSlice(deps, { receiving, events, unreadable, progress })));
      }
      deps.probe.reach('accepted');
      return acceptances;
    },
  };
}

/**
 * Splits a batch after each event that may change how the next one is decided. A command or a press is stored alone,
 * because in lock order its rows come before those that an earlier event of the batch would have locked.
 */
function sliceAtChanges(events: readonly InboundEnvelope[]): readonly (readonly InboundEnvelope[])[] {
  const slices: InboundEnvelope[][] = [[]];
  for (const envelope of events) {
    const { kind } = envelope.event;
    const isAlone = kind === 'button' || kind === 'stop' || beginsLikeCommand(envelope);
    if (isAlone) slices.push([]);
    slices.at(-1)?.push(envelope);
    if (isAlone || kind === 'migrated') slices.push([]);
  }
  const filled = slices.filter((slice) => slice.length > 0);
  return filled.length === 0 ? [[]] : filled;
}

type Slice = {
  readonly receiving: IntakeAccount;
  readonly events: readonly InboundEnvelope[];
  readonly unreadable: readonly Proposal[];
  /** The platform's cursor once the complete batch is stored; empty for all slices except the last. */
  readonly progress: Pick<AcceptInput, 'cursor' | 'anchors'>;
};

function progressOf({ cursor, anchors }: InboundBatch): Slice['progress'] {
  return { ...(cursor !== undefined && { cursor }), ...(anchors && { anchors: [...anchors] }) };
}

async function acceptSlice(deps: InboundDeps, slice: Slice): Promise<readonly Acceptance[]> {
  try {
    return await decideAndStore(deps, slice);
  } catch (error) {
    if (isEnvironmentFault(error)) throw error;
    deps.log.error({ error, account: slice.receiving.account }, 'intake.batch-failed');
    return acceptOneByOne(deps, slice);
  }
}

/** Says whether the environment is at fault, which the caller must wait out; anything else is a bad event. */
function isEnvironmentFault(error: unknown): boolean {
  return isStoreAway(error) || hasCode(error, 'stale_epoch');
}

/** Decides again if a person was approved, revoked or linked after intake had read. */
async function decideAndStore(deps: InboundDeps, slice: Slice): Promise<readonly Acceptance[]> {
  for (let attempts = 1; ; attempts++) {
    try {
      const { proposals, links } = await proposeAll(deps, slice);
      return await store(deps, slice, { proposals: [...proposals, ...slice.unreadable], links });
    } catch (error) {
      if (!hasCode(error, 'access_changed')) throw error;
      if (attempts < maxDecisions) continue;
      const message = `Access to ${slice.receiving.account} changes faster than Parley can decide about it.`;
      throw new ParleyError('store_unavailable', message, { cause: error, retry: { kind: 'later' } });
    }
  }
}

/** The decisions on a batch. `links` are the links at the time of the decision. */
type DecidedBatch = Pick<AcceptInput, 'proposals' | 'links'>;

async function proposeAll(deps: InboundDeps, { events: told, receiving }: Slice): Promise<DecidedBatch> {
  const events = await markOwnReplies(deps.store, told);
  const conversations = [...new Set(events.map((envelope) => conversationKeyOf(envelope.route)))];
  if (conversations.length === 0) return { proposals: [], links: undefined };
  const people = peopleOf(deps.policy, events);
  const { links, linkedRoles, ...known } = await deps.store.read(readArrivalFacts, {
    account: receiving.account,
    conversations,
    ...people,
  });
  const byKey = new Map(known.conversations.map((fact) => [fact.key, fact]));
  const proposals: Proposal[] = [];
  const turn = createYielder();
  for (const envelope of events) {
    await turn();
    const arrival: Arrival = {
      envelope,
      facts: byKey.get(conversationKeyOf(envelope.route)),
      links,
      linkedRoles,
      role: known.roles.get(envelope.sender.id) ?? 'none',
      botName: receiving.botName(),
      accountName: receiving.accountName,
      now: deps.clock.now(),
    };
    const first = propose(deps.policy, arrival);
    const isRest = isOrder(first) && (await isRestOf(deps, arrival));
    const proposed = isRest ? propose(deps.policy, { ...arrival, isRest }) : first;
    proposals.push(
      proposed.kind === 'proposal'
        ? await askHooks(deps, arrival, proposed.proposal)
        : await decideCommand(deps, proposed.command),
    );
  }
  const { peers, identities } = people;
  return { proposals, links: { peers, identities, accounts: links.accounts } };
}

/** Says whether the event is a command to this bot or to another in the group. */
function isOrder(proposed: ProposeResult): boolean {
  if (proposed.kind === 'command') return true;
  const { decision } = proposed.proposal;
  return decision.kind === 'ignore' && decision.reason === 'for-other-bot';
}

async function isRestOf({ store, policy }: InboundDeps, arrival: Arrival): Promise<boolean> {
  const { envelope } = arrival;
  if (!beginsLikeCommand(envelope)) return false;
  const { joinMs } = policy;
  return continuesText(store, { envelope, laneKey: laneOf(policy, arrival).key, joinMs });
}

/** Returns the people behind a batch's events. Links matter only for people who write directly. */
function peopleOf({ identityLinks }: InboundPolicy, events: readonly InboundEnvelope[]) {
  const direct = events.filter(({ chat }) => chat.kind === 'dm');
  const peers = [...new Set(direct.map(({ route, sender }) => platformRef(route.channel, sender.id)))];
  const identities = peers.flatMap((peer) => identityLinks.get(peer) ?? []);
  return { peers, identities, senders: [...new Set(events.map(({ sender }) => sender.id))] };
}

async function store(
  deps: InboundDeps,
  slice: Slice,
  { proposals, links }: DecidedBatch,
): Promise<readonly Acceptance[]> {
  const { receiving, progress } = slice;
  const { account, epoch, holder } = receiving;
  const input: AcceptInput = { account, epoch, holder, proposals, links, ...progress };
  const begun = proposals.flatMap(({ decision }) => (decision.kind === 'accept' ? [decision.item.lane] : []));
  const slots = begun[0] && deps.reserve(begun[0].class, begun.length);
  const claims = slots && { claims: slots.terms };
  let runs: readonly ClaimedRun[] = [];
  try {
    const accepted = await deps.store.write(acceptBatch, { ...input, ...claims });
    runs = accepted.runs;
    deps.meters?.received(routeOfKey(account).channel, accepted.acceptances);
    if (proposals.some(({ decision }) => decision.kind === 'command')) deps.probe.reach('command-applied');
    if (accepted.acceptances.some(isDecision)) deps.probe.reach('approval-decided');
    deps.start(accepted.effects);
    for (const eventKey of accepted.effects.reusedKeys)
      deps.log.warn({ account, eventKey }, 'intake.id-reused');
    return accepted.acceptances;
  } finally {
    slots?.begin(runs);
  }
}

/** Says whether a press has decided a question. */
function isDecision(acceptance: Acceptance): boolean {
  return (
    acceptance.kind === 'pressed' && (acceptance.result === 'approved' || acceptance.result === 'denied')
  );
}

/** One bad event must not hold up the others: an event that fails three times on its own is stored raw and skipped. */
async function acceptOneByOne(all: InboundDeps, slice: Slice): Promise<readonly Acceptance[]> {
  // Without claims: a failing lane isn't the fault of the event that enters it.
  const deps: InboundDeps = { ...all, reserve: () => undefined };
  const acceptances: Acceptance[] = [];
  for (const envelope of slice.events) {
    const one: Slice = { ...slice, events: [envelope], unreadable: [], progress: {} };
    acceptances.push(...(await acceptWithRetry(deps, one, envelope)));
  }
  acceptances.push(...(await store(deps, slice, { proposals: slice.unreadable, links: undefined })));
  return acceptances;
}

async function acceptWithRetry(
  deps: InboundDeps,
  one: Slice,
  envelope: InboundEnvelope,
): Promise<readonly Acceptance[]> {
  for (let attempts = 1; attempts <= 3; attempts++) {
    try {
      return await decideAndStore(deps, one);
    } catch (error) {
      if (isEnvironmentFault(error)) throw error;
      deps.log.error({ error, eventKey: envelope.eventKey, attempts }, 'intake.event-failed');
    }
  }
  const raw = JSON.stringify(envelope);
  const { eventKey, event } = envelope;
  const named = 'messageId' in event && event.messageId !== undefined ? { messageId: event.messageId } : {};
  const unreadable = unreadableProposal(one.receiving, { eventKey, raw, ...named });
  return store(deps, one, { proposals: [unreadable], links: undefined });
}

function unreadableProposal(
  { account }: IntakeAccount,
  { eventKey, raw, messageId, gap }: Omit<NonNullable<InboundBatch['unreadable']>[number], 'problem'>,
): Proposal {
  return {
    eventKey,
    kind: 'unreadable',
    conversationKey: account,
    senderId: '',
    ...(messageId !== undefined && { messageId }),
    raw: withCause(raw.slice(0, maxRaw).toWellFormed(), gap?.reason),
    decision: { kind: 'refuse', reason: 'unreadable' },
  };
}

/** Loads the input of a command. The command acts with the commit, or waits as an item in its lane's order. */
async function decideCommand(
  { commands, store, policy, hooks }: InboundDeps,
  arrival: CommandArrival,
): Promise<Proposal> {
  const deps: CommandDeps = { ...commands, store, policy };
  const { order, call, event } = arrival;
  await tellHooks(hooks, arrival);
  const input = await order.load(deps, call);
  const isItem = order.command.order === 'lane' && order.problem === undefined;
  const decision: Decision = isItem
    ? { kind: 'accept', item: itemOf(arrival, input) }
    : {
        kind: 'command',
        command: order.command.name,
        input,
        asked: askedIn(arrival),
        lane: call.lane,
        route: call.envelope.route,
      };
  return { ...event, decision };
}

/** Longest command that is kept, in UTF-16 units. */
const maxAskedLength = 500;

/** Returns a command of a direct chat as it was written; one that may contain a code without its words. */
function askedIn({ order, call: { envelope } }: CommandArrival): AskedCommand | undefined {
  const { event, chat, sender } = envelope;
  if (chat.kind !== 'dm' || event.kind !== 'message') return undefined;
  const written = order.command.mayHaveCode ? event.text.replace(/\s[\s\S]*$/, '') : event.text;
  const text = written.slice(0, maxAskedLength).toWellFormed();
  return { messageId: event.messageId, name: sender.name, text };
}

function itemOf({ order, call }: CommandArrival, input: unknown): NewItem {
  const { envelope, lane, authority } = call;
  const text = envelope.event.kind === 'message' ? envelope.event.text : '';
  return {
    id: newRowId(),
    kind: 'command',
    lane,
    route: envelope.route,
    authority,
    content: {
      ...contentOf(envelope, { ...emptyMessage, text }),
      command: {
        name: order.command.name,
        input,
        ...(order.command.abortsRun && { abortsRun: true }),
      },
    },
    passesGate: true,
    contextLimit: 0,
  };
}

/**
 * Marks replies to the bot if the network doesn't say whose message they answer: the bot's messages are known from
 * their receipts. Costs nothing for a batch without such replies.
 */
async function markOwnReplies(
  store: Pick<Store, 'read'>,
  events: readonly InboundEnvelope[],
): Promise<readonly InboundEnvelope[]> {
  const places = events.flatMap((envelope) => placeOf(envelope) ?? []);
  if (places.length === 0) return events;
  const own = await store.read(readOwnMessages, { places });
  const isOwn = (envelope: InboundEnvelope) => {
    const place = placeOf(envelope);
    return place !== undefined && places.some((one, index) => own[index] && isSame(one, place));
  };
  return events.map((envelope) => {
    const { event } = envelope;
    return event.kind === 'message' && isOwn(envelope)
      ? { ...envelope, event: { ...event, repliesToBot: true } }
      : envelope;
  });
}

function placeOf({ event, route }: InboundEnvelope): MessagePlace | undefined {
  if (event.kind !== 'message' || event.repliesToBot || event.repliesTo === undefined) return undefined;
  return { conversationKey: conversationKeyOf(route), messageId: event.repliesTo };
}

function isSame(one: MessagePlace, other: MessagePlace): boolean {
  return one.conversationKey === other.conversationKey && one.messageId === other.messageId;
}

type ArrivingText = {
  readonly envelope: InboundEnvelope;
  readonly laneKey: string;
  /** How long the pieces of a text are joined, ms. */
  readonly joinMs: number;
};

/** Networks report times in whole seconds. */
const roundingMs = 1000;

/** Says whether the text begins like a command, so that intake treats it as one unless something prevents that. */
function beginsLikeCommand({ event }: InboundEnvelope): boolean {
  return event.kind === 'message' && event.text.trimStart().startsWith('/');
}

/**
 * Says whether the message continues a text that its sender's client has split. The sender wrote or pasted one text
 * that begins in an earlier message, so this isn't a command.
 */
async function continuesText(
  store: Pick<Store, 'read'>,
  { envelope, laneKey, joinMs }: ArrivingText,
): Promise<boolean> {
  const conversationKey = conversationKeyOf(envelope.route);
  const senderId = envelope.sender.id;
  const sentAt = await store.read(readSplitText, { laneKey, conversationKey, senderId });
  // Earlier pieces in the same batch are already stored.
  return sentAt !== undefined && Math.abs(envelope.sentAt - sentAt) <= joinMs + roundingMs;
}

// Decides how far an event's times are trusted. `sentAt` may come from the sender's own clock and is only displayed;
// limits count by the time when a server, or Parley, received the event.

/** No platform keeps events longer, and by then limits have long been free again. */
const longestBacklogMs = 24 * 3_600_000;

/** Returns the envelope with dates that can be displayed, sorted and counted by, whatever the platform said. */
export function withSaneTimes(envelope: InboundEnvelope, now: number): InboundEnvelope {
  const range = { min: now - longestBacklogMs, max: now, fallback: now };
  return {
    ...envelope,
    sentAt: remoteTime(envelope.sentAt, now),
    receivedAt: clampRemote(envelope.receivedAt, range),
  };
}
