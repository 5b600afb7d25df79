/** A message's trace as a story: one fact per line, in chronological order. */

import { parleyCommand } from '#channel-kit/own-commands.ts';
import type { IgnoreReason, RefusalReason } from '#contracts/acceptance.ts';
import type { EventFacts } from '../store/reads/why/read-items.ts';
import type { ApprovalFacts, CallApprovalFacts, PartFacts } from '../store/reads/why/read-parts.ts';
import type {
  ChildFacts,
  ModelCallFacts,
  RunFacts,
  TaskFacts,
  ToolCallFacts,
} from '../store/reads/why/read-runs.ts';
import type { MessageTrace, TraceSubject } from '../store/reads/why/trace.ts';
import { type Fact, factLines, timeOf } from './fact-lines.ts';
import { awaitedBy, itemEnd, itemFacts } from './render-item.ts';

/** Renders a trace as lines of plain text; the times are local. */
export function renderTrace(account: MessageTrace): string {
  const { asked, events, items, runs, children, tasks, parts, approvals, callApprovals } = account;
  const facts = [
    ...events.map(eventFact),
    ...items.flatMap(itemFacts),
    ...runs.flatMap(runFacts),
    ...tasks.flatMap(taskFacts),
    ...children.flatMap((child) => childFacts(child, tasks)),
    ...approvals.map(approvalFact),
    ...callApprovals.flatMap(callApprovalFacts),
    ...parts.map(partFact),
  ];
  const ends = [...items.map((item) => itemEnd(item, account)), ...approvals.map(approvalEnd)];
  return [nameOf(asked), ...factLines(facts), ...ends, ...costs(runs), ...nextSteps(parts)].join('\n');
}

function nameOf(asked: TraceSubject): string {
  switch (asked.kind) {
    case 'message':
      return `message ${asked.conversationKey}/${asked.messageId}`;
    case 'event':
      return `event ${asked.account}:${asked.eventKey}`;
    case 'item':
    case 'part':
    case 'run':
    case 'transcript':
    case 'child':
    case 'task':
      return `${asked.kind} ${asked.id}`;
    case 'approval':
      return `question ${asked.id}`;
    case 'call':
      return `tool call ${asked.messageId}/${asked.callId}`;
    default:
      return asked satisfies never;
  }
}

function eventFact({ kind, outcome, reason, account, eventKey, at, detail }: EventFacts): Fact {
  const name = eventKey.startsWith(`${kind}:`) ? eventKey : `${eventKey} (${kind})`;
  const words = reason === undefined ? undefined : reasonWords(outcome, reason);
  const why = reason === undefined ? '' : ` (${reason})${words === undefined ? '' : `: ${words}`}`;
  const what =
    detail === undefined ? '' : outcome === 'refused' ? `: ${detail}` : `; unknown content: ${detail}`;
  return { at, text: `event ${name} reached ${account}: ${outcome}${why}${what}` };
}

function runFacts(run: RunFacts): readonly Fact[] {
  const { id, laneKey, sessionId, authority, startedAt, endedAt, parkedAt } = run;
  const facts: Fact[] = [
    {
      at: startedAt,
      text: `run ${id} began in lane ${laneKey}, session ${sessionId}, with authority ${authority}`,
    },
    ...run.modelCalls.map(modelCallFact),
    ...run.toolCalls.map((call) => toolCallFact(call, run)),
    ...run.summaries.map((summary) => ({
      at: summary.at,
      text: `the history was summarised as ${summary.id}`,
    })),
  ];
  if (parkedAt !== undefined)
    facts.push({ at: parkedAt, text: `run ${id} was parked, waiting for ${awaitedBy(run.parkReason)}` });
  facts.push({ at: endedAt ?? Number.MAX_SAFE_INTEGER, text: `run ${id} ${runState(run)}` });
  return facts;
}

/** Says how the run ended, or what it is doing. */
function runState(run: RunFacts): string {
  const { endedAt, endReason, cancelReason, state, isHandedOver } = run;
  const attempts = run.attempts === 1 ? '' : `, attempt ${run.attempts}`;
  const detail = run.detail === undefined ? '' : `: ${run.detail}`;
  if (endedAt === undefined) {
    const cancel = cancelReason === undefined ? '' : ` and to be cancelled (${cancelReason})`;
    if (isHandedOver) return `was handed over and is waiting for a worker${attempts}${cancel}`;
    return `is ${state === 'parked' ? 'still parked' : 'still open'}${attempts}${cancel}`;
  }
  if (endReason === 'natural') return `ended normally${detail}${attempts}`;
  if (cancelReason === undefined) return `ended (${endReason})${detail}${attempts}`;
  const end = endReason === cancelReason ? '' : `, ended (${endReason})`;
  return `was cancelled (${cancelReason})${end}${detail}${attempts}`;
}

function childFacts(child: ChildFacts, tasks: readonly TaskFacts[]): readonly Fact[] {
  const { id, depth, parentRunId, parentCallId, laneKey, createdAt, endedAt, state, excerpt } = child;
  const words = excerpt === undefined ? '' : ` “${excerpt}”`;
  const task = tasks.find(({ runId, callId }) => runId === parentRunId && callId === parentCallId);
  const purpose =
    child.subtaskId === undefined || !task ? '' : ` for ${subtaskName(task.id, child.subtaskId)}`;
  const spawned = {
    at: createdAt,
    text: `sub-agent ${id}${words} was spawned by run ${parentRunId} (${parentCallId})${purpose} at depth ${depth} in lane ${laneKey}`,
  };
  if (endedAt === undefined)
    return [spawned, { at: Number.MAX_SAFE_INTEGER, text: `sub-agent ${id} is ${state}` }];
  const told = toldWords[child.told ?? 'none'] ?? toldWords.none;
  const used = `tokens: ${child.tokens}, ${dollars(child.cost)}`;
  return [spawned, { at: endedAt, text: `sub-agent ${id} ended (${child.status}), ${used}; ${told}` }];
}

const toldWords: Readonly<Record<string, string>> = {
  tool: 'its result went to the waiting call',
  lane: "its result went into its parent's lane",
  task: 'its result went to its subtask',
  none: 'nothing was waiting for its result',
};

/** Says who asked for the task, what became of each subtask, and how it ended. */
function taskFacts(task: TaskFacts): readonly Fact[] {
  const { id, agentId, runId, callId, caller, createdAt, endedAt, state, excerpt } = task;
  const words = excerpt === undefined ? '' : ` “${excerpt}”`;
  const above =
    task.parentTaskId === undefined
      ? ''
      : `, for subtask ${task.parentSubtaskId} of task ${task.parentTaskId}`;
  const by = caller === undefined ? `delegated by run ${runId} (${callId})` : `sent by ${caller}`;
  const error = task.error === undefined ? '' : `: ${task.error}`;
  return [
    { at: createdAt, text: `task ${id}${words} was ${by} to agent ${agentId}${above}` },
    ...task.subtasks.flatMap((one) => subtaskFacts(task, one)),
    endedAt === undefined
      ? { at: Number.MAX_SAFE_INTEGER, text: `task ${id} is ${state}${error}` }
      : { at: endedAt, text: `task ${id} ended (${state}${error}); ${taskToldWords[task.told ?? 'none']}` },
  ];
}

const taskToldWords = {
  lane: 'its answer went into the conversation',
  parent: 'its answer went to the subtask that it is part of',
  caller: 'its answer went to its sender',
  none: 'nothing was waiting for its answer',
} as const;

type SubtaskFacts = TaskFacts['subtasks'][number];

function subtaskName(taskId: string, id: string): string {
  return `subtask ${id} of task ${taskId}`;
}

/** One line for its last dispatch and one for its end, or for what it waits for. */
function subtaskFacts(task: TaskFacts, subtask: SubtaskFacts): readonly Fact[] {
  const { agentId, childId, state, tries, startedAt, endedAt } = subtask;
  const name = subtaskName(task.id, subtask.id);
  const to = childId === undefined ? agentId : `agent ${agentId} as sub-agent ${childId}`;
  const again = tries > 1 ? `, try ${tries}` : '';
  const error = subtask.error === undefined ? '' : `: ${subtask.error}`;
  return [
    ...(startedAt === undefined ? [] : [{ at: startedAt, text: `${name} was given to ${to}${again}` }]),
    { at: endedAt ?? Number.MAX_SAFE_INTEGER, text: `${name} is ${state}${error}` },
  ];
}

function modelCallFact(call: ModelCallFacts): Fact {
  const purpose = call.purpose === 'turn' ? '' : ` (${call.purpose})`;
  const tools = call.isWithoutTools ? ", without tools, which it doesn't support" : '';
  const text = `model ${call.model}${purpose}: ${modelCallText(call)}${tools}${missText(call)}`;
  return { at: call.at, text };
}

function missText({ cacheMiss }: ModelCallFacts): string {
  if (cacheMiss === undefined) return '';
  const { reason, changed } = cacheMiss;
  const cause = changed.length > 0 ? `Parley changed ${changed.join(', ')}` : 'Parley changed nothing';
  return `; its server didn't use its cache (${reason}; ${cause})`;
}

function modelCallText({ state, cost, latencyMs, doubt, ...tokens }: ModelCallFacts): string {
  if (state === 'open') return 'asked, no answer yet';
  if (state === 'void') return 'not counted, so it cost nothing';
  if (doubt === 'stopped')
    return `stopped: about ${tokens.inputTokens + tokens.cacheReadTokens + tokens.cacheWriteTokens} tokens in, ${tokens.outputTokens} out, ${dollars(cost)}, ${latencyMs} ms`;
  if (doubt === 'miscounted')
    return `the server counted more tokens than the call can have had: at most ${dollars(cost)}, ${latencyMs} ms`;
  if (state === 'unknown')
    return `broke off before its usage was known: at most ${dollars(cost)}, ${latencyMs} ms`;
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = tokens;
  const cached =
    cacheReadTokens + cacheWriteTokens === 0
      ? ''
      : ` (cache: ${cacheReadTokens} read, ${cacheWriteTokens} written)`;
  return `${inputTokens} tokens in, ${outputTokens} out${cached}, ${dollars(cost)}, ${latencyMs} ms`;
}

function toolCallFact(call: ToolCallFacts, run: RunFacts): Fact {
  const { name, callId, startedAt, endedAt, state } = call;
  return {
    at: startedAt ?? endedAt ?? run.startedAt,
    text: `tool ${name} (${callId}): ${state === 'done' ? toolCallEnd(call) : openCallWords[state]}`,
  };
}

const openCallWords = {
  pending: 'not started',
  started: 'started, no result yet',
  waiting: 'waiting for its result from outside',
} as const;

function toolCallEnd({ startedAt, endedAt, isError, isUnknown, isExpired }: ToolCallFacts): string {
  if (isUnknown) return 'interrupted, outcome unknown';
  // Refused, skipped or cancelled before it began.
  if (startedAt === undefined) return isError ? "didn't run" : 'done';
  const ms = `${(endedAt ?? startedAt) - startedAt} ms`;
  if (isExpired) return `expired after ${ms}: no answer came in time`;
  return `${isError ? 'failed' : 'done'} in ${ms}`;
}

function costs(runs: readonly RunFacts[]): readonly string[] {
  const calls = runs.flatMap((run) => run.modelCalls);
  if (calls.length === 0) return [];
  const cost = calls.reduce((sum, call) => sum + call.cost, 0);
  const unsure = calls.filter(({ state }) => state === 'unknown');
  const isEstimate = unsure.some(({ doubt }) => doubt === 'stopped');
  const most = isEstimate ? 'about ' : unsure.length > 0 ? 'at most ' : '';
  const soFar = calls.some(({ state }) => state === 'open') ? ' so far' : '';
  const count = `${calls.length} model ${calls.length === 1 ? 'call' : 'calls'}`;
  return [`cost${soFar}: ${most}${dollars(cost)} in ${count}`];
}

function dollars(micro: number): string {
  return `$${(micro / 1e6).toFixed(6)}`;
}

/** Says in words why an event was refused or ignored; undefined for any other outcome or reason. */
function reasonWords(outcome: string, reason: string): string | undefined {
  if (outcome !== 'refused' && outcome !== 'ignored') return undefined;
  return Object.hasOwn(words, reason) ? words[reason as keyof typeof words] : undefined;
}

const words: Readonly<Record<IgnoreReason | RefusalReason, string>> = {
  'own-message': 'the bot wrote it itself',
  'bot-message': 'another bot wrote it',
  'not-mentioned': "it isn't addressed to the bot",
  empty: "there's nothing in it to answer",
  'unknown-message': "it concerns a message that Parley doesn't have",
  'for-other-bot': 'it may be a command for another bot',
  'dropped-by-hook': 'a hook dropped it',
  'claimed-by-hook': 'a hook has taken it over',
  'not-the-author': 'only its author may change it',
  unchanged: 'it changes nothing',
  membership: 'it only reports who is in the conversation',
  migrated: 'it only reports that the conversation has moved',
  'dm-disabled': 'direct messages are turned off',
  'dm-not-allowed': "its sender isn't on the list of people who may write",
  'dm-not-paired': "its sender hasn't been approved",
  'pairing-full': 'too many requests for access are pending',
  'group-disabled': 'groups are turned off',
  'group-not-allowed': "the group isn't on the list of allowed groups",
  'sender-not-allowed': "its sender isn't on the list of people who may write in groups",
  'unsupported-event': "Parley doesn't support this kind of event",
  unreadable: "it can't be read; it's stored as received",
  'queue-full': 'too many messages were waiting',
  'rate-limited': 'its sender had sent too many in a short time',
  'not-permitted': "its sender isn't permitted to do that",
};

/** Says what was asked, and when. */
function approvalFact({ id, kind, about, account, createdAt }: ApprovalFacts): Fact {
  const what =
    kind === 'group'
      ? `whether to answer in ${about}`
      : `whether to let ${about ?? 'a person'} in${account === undefined ? '' : ` at ${account}`}`;
  return { at: createdAt, text: `question ${id} was asked: ${what}` };
}

/** Says how the question was decided, or until when it can be. */
function approvalEnd({ id, state, decidedBy, expiresAt, isOver }: ApprovalFacts): string {
  switch (state) {
    case 'open':
      if (isOver) return `question ${id} expired at ${timeOf(expiresAt)}`;
      return `question ${id} is open until ${timeOf(expiresAt)}; an owner can decide it`;
    case 'expired':
      return `question ${id} expired at ${timeOf(expiresAt)} without a decision`;
    case 'approved':
    case 'denied':
      return `question ${id} was ${state} by ${decidedBy ?? 'someone unknown'}`;
    default:
      return state satisfies never;
  }
}

/** Says who was asked about which call, and what became of it. */
function callApprovalFacts(question: CallApprovalFacts): readonly Fact[] {
  const { id, runId, callId, tool, askers, authority, createdAt, excerpt } = question;
  const words = excerpt === undefined ? '' : ` “${excerpt}”`;
  const cause = askers.length === 0 ? '' : ` ${askers.join(', ')} with authority ${authority}, or`;
  const asked = `question ${id} was asked about ${tool} (${callId})${words} of run ${runId}, of${cause} an owner`;
  const { at, text } = callApprovalEnd(question);
  return [
    { at: createdAt, text: asked },
    { at, text: `question ${id} ${text}` },
  ];
}

function callApprovalEnd(question: CallApprovalFacts): Fact {
  const { state, decidedBy, expiresAt, endedAt, isOver, isGranted } = question;
  const at = endedAt ?? Number.MAX_SAFE_INTEGER;
  const by = `by ${decidedBy ?? 'someone unknown'}`;
  switch (state) {
    case 'open':
      return { at, text: isOver ? `expired at ${timeOf(expiresAt)}` : `is open until ${timeOf(expiresAt)}` };
    case 'approved':
      return { at, text: `was approved ${by}${isGranted ? ', for this call from now on' : ''}` };
    case 'denied':
      return { at, text: `was denied ${by}` };
    case 'expired':
      return { at, text: 'expired without a decision' };
    case 'void':
      return { at, text: 'needed no decision any more' };
    default:
      return state satisfies never;
  }
}

/** Describes a part's state, at the time it ended. */
function partFact(part: PartFacts): Fact {
  const { key, purpose, conversationKey, createdAt, endedAt, excerpt, attempts } = part;
  const words = excerpt === undefined ? '' : ` “${excerpt}”`;
  const tried = attempts > 1 ? `, ${attempts} attempts` : '';
  return {
    at: endedAt ?? createdAt,
    text: `${purpose} ${key} to ${conversationKey}: ${part.purpose === 'preview' ? previewState(part) : stateOf(part)}${tried}${words}`,
  };
}

function stateOf({ state, messageIds, dueAt, askedToWait: asked, problem }: PartFacts): string {
  const reason = problem === undefined ? '' : ` (${problem})`;
  switch (state) {
    case 'sent':
      return messageIds.length === 0 ? 'sent' : `sent as ${messageIds.join(', ')}`;
    case 'pending':
      return `to be sent at ${timeOf(dueAt)}${asked === undefined ? '' : waitOf(asked)}${reason}`;
    case 'sending':
      return `being sent${reason}`;
    case 'unknown':
      return `unknown${reason}: it may or may not have arrived`;
    case 'failed':
      return `failed${reason}`;
    default:
      return state satisfies never;
  }
}

/** Describes a preview, which isn't a message of its own: its answer replaces it, unless its id is unknown. */
function previewState({ state, messageIds, endedAt, problem }: PartFacts): string {
  if (state === 'failed') return `failed (${problem})`;
  const as = messageIds.length === 0 ? '' : ` as ${messageIds.join(', ')}`;
  if (endedAt !== undefined) return `sent${as}; later replaced or removed by its answer`;
  if (state === 'unknown') return 'unknown: it may remain in the chat next to the answer';
  return `sent${as}, shown while the answer is written`;
}

/** Says how long the platform wants Parley to wait; it is asked again when the part is due, whatever it said. */
function waitOf({ since, until }: NonNullable<PartFacts['askedToWait']>): string {
  return `; its platform has been asking for a delay since ${timeOf(since)}, now until ${timeOf(until)}`;
}

/** Returns the command for each part that an operator may send again. */
function nextSteps(parts: readonly PartFacts[]): readonly string[] {
  return parts
    .filter(({ state, purpose }) => (state === 'unknown' || state === 'failed') && purpose !== 'preview')
    .map(({ key, state }) => {
      const twice = state === 'unknown' ? ' (it may then arrive twice)' : '';
      return `to send it again${twice}: ${parleyCommand} outbox retry ${key}`;
    });
}
