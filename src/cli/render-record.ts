/** Records of anything but messages, rendered the same way: facts in chronological order, then the current state. */
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { personLabel } from '../store/access/sender-roles.ts';
import type {
  AccountFacts,
  AlertFacts,
  ConversationFacts,
  PersonFacts,
  ProcessFacts,
  RecordTrace,
  SignInFacts,
} from '../store/reads/why/read-record.ts';
import type { LaneFacts, SessionFacts } from '../store/reads/why/read-session.ts';
import { type Fact, factLines, timeOf } from './fact-lines.ts';
import { awaitedBy } from './render-item.ts';

type Story = { readonly name: string; readonly facts: readonly Fact[]; readonly state: readonly string[] };

/** Renders a record as lines of plain text; the times are local. */
export function renderRecord(record: RecordTrace): string {
  const { name, facts, state } = storyOf(record);
  return [name, ...factLines(facts), ...state].join('\n');
}

function storyOf(record: RecordTrace): Story {
  switch (record.kind) {
    case 'session':
      return sessionStory(record.session);
    case 'lane':
      return laneStory(record.lane);
    case 'conversation':
      return conversationStory(record.conversation);
    case 'account':
      return accountStory(record.account);
    case 'process':
      return processStory(record.process);
    case 'person':
      return personStory(record.person);
    case 'sign-in':
      return signInStory(record.signIn);
    case 'alert':
      return alertStory(record.alert);
    default:
      return record satisfies never;
  }
}

function sessionStory(session: SessionFacts): Story {
  const { id, laneKey, agentId, createdAt, updatedAt, endedAt, messageCount, cost } = session;
  const { parentSessionId: parent, nextSessionId: next, lastRunId: run, lane } = session;
  const of = parent === undefined ? '' : `, for a sub-agent of session ${parent}`;
  const place = next === undefined ? '' : `: session ${next} took its place`;
  return {
    name: `session ${id}`,
    facts: [
      { at: createdAt, text: `session ${id} of agent ${agentId} began in lane ${laneKey}${of}` },
      {
        at: updatedAt,
        text: `last written in${run === undefined ? '' : `, by run ${run}`}`,
      },
      ...(endedAt === undefined ? [] : [{ at: endedAt, text: `it ended${place}` }]),
    ],
    state: [
      `messages: ${messageCount}, cost: $${(cost / 1e6).toFixed(6)}`,
      ...(lane === undefined ? [] : ["it is its lane's current session", ...laneState(lane)]),
      `to see its summary and its cost by purpose: ${parleyCommand} sessions show ${id}`,
    ],
  };
}

function laneStory(lane: LaneFacts): Story {
  const { key, leadsTo, agentId, mode, sessionId, lastActivityAt } = lane;
  const led = `its messages enter lane ${leadsTo}, since accounts were linked`;
  return {
    name: `lane ${key}`,
    facts: [{ at: lastActivityAt, text: 'last activity' }],
    state: [
      ...(leadsTo === undefined ? [] : [led]),
      `agent ${agentId}, mode ${mode}, session ${sessionId}`,
      ...laneState(lane),
    ],
  };
}

function laneState({ run, waiting, waitingCount }: LaneFacts): readonly string[] {
  const running = run === undefined ? 'no run is open' : `run ${run.id} ${runState(run)}`;
  if (waitingCount === 0) return [running, 'nothing is waiting'];
  const more = waitingCount > waiting.length ? ' …' : '';
  return [running, `waiting, next first (${waitingCount}): ${waiting.join(', ')}${more}`];
}

function runState({ parkedAt, parkReason }: NonNullable<LaneFacts['run']>): string {
  if (parkedAt === undefined) return 'is open';
  return `has been waiting for ${awaitedBy(parkReason)} since ${timeOf(parkedAt)}`;
}

function conversationStory(conversation: ConversationFacts): Story {
  const { key, movedTo, admittedBy, unreachableAt, openParts, unknownParts } = conversation;
  const gone = 'it could no longer be reached: the bot was blocked or removed, or the conversation is gone';
  return {
    name: `conversation ${key}`,
    facts: unreachableAt === undefined ? [] : [{ at: unreachableAt, text: gone }],
    state: [
      ...(movedTo === undefined ? [] : [`it continues under the id ${movedTo}`]),
      ...(admittedBy === undefined ? [] : [`${admittedBy} allowed it`]),
      openParts.length === 0
        ? 'nothing is waiting to be sent'
        : `to be sent, next first: ${openParts.join(', ')}`,
      ...(unknownParts.length === 0 ? [] : [`may or may not have arrived: ${unknownParts.join(', ')}`]),
    ],
  };
}

function accountStory({ key, holder, leaseUntil }: AccountFacts): Story {
  const held = `process ${holder} receives for it; its lease lasts until ${timeOf(leaseUntil)}`;
  const free = 'no process receives for it: it is off, down or still starting';
  return { name: `bot account ${key}`, facts: [], state: [holder === undefined ? free : held] };
}

function processStory({ id, role, startedAt, accounts }: ProcessFacts): Story {
  return {
    name: `process ${id}`,
    facts: [{ at: startedAt, text: `it was started (role ${role})` }],
    state: [
      'it has not been found dead, so it counts as running',
      ...(accounts.length === 0 ? [] : [`it receives for ${accounts.join(', ')}`]),
    ],
  };
}

function personStory(person: PersonFacts): Story {
  const { ref, approvals, requests, link, conversation } = person;
  const facts: Fact[] = [
    ...requests.map(({ account, approvalId, createdAt, expiresAt, isDeclined }) => {
      const end = isDeclined
        ? `was declined, which lasts until ${timeOf(expiresAt)}`
        : `is open until ${timeOf(expiresAt)}`;
      return {
        at: createdAt,
        text: `${ref} asked for access at ${account}: question ${approvalId} ${end}`,
      };
    }),
    ...approvals.map(({ account, role, approvedAt, approvedBy }) => ({
      at: approvedAt,
      text: `${ref} was approved at ${account} as ${role}, by ${approvedBy}`,
    })),
  ];
  if (link)
    facts.push({
      at: link.linkedAt,
      text: `${ref} was linked with ${link.others.join(', ') || 'nobody else'}`,
    });
  const isStored = facts.length > 0;
  return {
    name: `person ${personLabel(person)}`,
    facts,
    state: [
      ...(isStored ? [] : ['nothing is stored about their access: no request, approval or link']),
      ...(conversation === undefined ? [] : [`their direct conversation is ${conversation}`]),
      "access through the configuration isn't listed here",
    ],
  };
}

function signInStory({ id, browser, createdAt, lastSeenAt, expiresAt }: SignInFacts): Story {
  return {
    name: `sign-in ${id}`,
    facts: [
      { at: createdAt, text: `${browser} signed in` },
      { at: lastSeenAt, text: 'last seen' },
    ],
    state: [
      `it is signed in until ${timeOf(expiresAt)}`,
      `to sign it out: ${parleyCommand} sign-ins end ${id}`,
    ],
  };
}

function alertStory(alert: AlertFacts): Story {
  const { id, kind, subject, count, raisedAt, lastAt, toldAt, partKey, dismissedAt, endedAt } = alert;
  const how = partKey === undefined ? 'on the page only' : `by part ${partKey}`;
  return {
    name: `alert ${id}`,
    facts: [
      { at: raisedAt, text: `${kind} was raised about ${subject}` },
      ...(toldAt === undefined ? [] : [{ at: toldAt, text: `the owner was notified ${how}` }]),
      ...(count > 1 ? [{ at: lastAt, text: `it happened again, ${count} times in all` }] : []),
      ...(dismissedAt === undefined ? [] : [{ at: dismissedAt, text: 'the owner dismissed it' }]),
    ],
    state: [endedAt === undefined ? 'it has not ended' : `it ended at ${timeOf(endedAt)}`],
  };
}
