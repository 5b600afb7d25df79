/** The account of a message as a story: one fact per line, in the order in which it happened. */
import { timeText } from '../logging/time-text.ts';
import type {
  ChildFacts,
  EventFacts,
  FileFacts,
  ItemFacts,
  MessageTrace,
  ModelCallFacts,
  PartFacts,
  RunFacts,
  ToolCallFacts,
  TraceSubject,
} from '../store/reads/why/trace.ts';

type Fact = { readonly at: number; readonly text: string };

/** Lines of plain text; the times are UTC. */
export function renderTrace(account: MessageTrace): string {
  const { asked, events, items, runs, children, parts } = account;
  const facts = [
    ...events.map(eventFact),
    ...items.flatMap(itemFacts),
    ...runs.flatMap(runFacts),
    ...children.flatMap(childFacts),
    ...parts.map(partFact),
  ];
  // Within one millisecond the order above is the order of events.
  facts.sort((a, b) => a.at - b.at);
  const lines = facts.map(({ at, text }) => `${timeOf(at).padEnd(timeWidth)}  ${text}`);
  return [nameOf(asked), ...lines, ...items.map((item) => endOf(item, parts)), ...costs(runs)].join('\n');
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
      return `${asked.kind} ${asked.id}`;
    default:
      return asked satisfies never;
  }
}

function eventFact({ kind, outcome, reason, account, eventKey, at }: EventFacts): Fact {
  const why = reason === undefined ? '' : ` (${reason})`;
  return { at, text: `${kind} ${eventKey} reached ${account}: ${outcome}${why}` };
}

function itemFacts(item: ItemFacts): readonly Fact[] {
  const { id, arrivedAt, laneKey, sender, authority, excerpt, notifiedAt, takenAt, runId } = item;
  const name = shortNameOf(item);
  const words = excerpt === undefined ? '' : ` “${excerpt}”`;
  const facts = [
    {
      at: arrivedAt,
      text: `${name} of ${sender} (${authority}) entered lane ${laneKey} as ${id}${words}`,
    },
  ];
  for (const file of item.files) facts.push({ at: arrivedAt, text: `${name}: ${fileText(file)}` });
  for (const { kind, by, at } of item.changes) facts.push({ at, text: `${name}: ${kind} by ${by}` });
  if (notifiedAt !== undefined)
    facts.push({ at: notifiedAt, text: `${name}: a waiting notice for its sender was stored` });
  if (takenAt !== undefined) {
    const how = item.joined === 'steered' ? 'steered into' : 'taken by';
    facts.push({ at: takenAt, text: `${name} was ${how} run ${runId} as ${item.transcriptId}` });
  }
  return facts;
}

function fileText(file: FileFacts): string {
  if (file.kind === 'missing') return `a file that came with it is missing: ${file.reason}`;
  return `a file came with it (${file.mimeType}, ${file.sizeBytes} bytes)`;
}

function shortNameOf({ messageId, kind }: ItemFacts): string {
  return messageId === undefined ? `a ${kind}` : `${kind} ${messageId}`;
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
    facts.push({ at: parkedAt, text: `run ${id} is parked (${run.parkReason ?? 'unknown reason'})` });
  const attempts = run.attempts === 1 ? '' : `, attempt ${run.attempts}`;
  const stop = run.cancelReason === undefined ? '' : `, cancelled (${run.cancelReason})`;
  if (endedAt !== undefined) {
    const detail = run.detail === undefined ? '' : `: ${run.detail}`;
    facts.push({ at: endedAt, text: `run ${id} ended (${run.endReason})${detail}${attempts}${stop}` });
  } else {
    const state = run.isHandedOver ? 'was handed over and is waiting for a worker' : 'is still open';
    facts.push({ at: Number.MAX_SAFE_INTEGER, text: `run ${id} ${state}${attempts}${stop}` });
  }
  return facts;
}

function childFacts(child: ChildFacts): readonly Fact[] {
  const { id, depth, parentRunId, parentCallId, laneKey, createdAt, endedAt, state, excerpt } = child;
  const words = excerpt === undefined ? '' : ` “${excerpt}”`;
  const spawned = {
    at: createdAt,
    text: `sub-agent ${id}${words} was spawned by run ${parentRunId} (${parentCallId}) at depth ${depth} in lane ${laneKey}`,
  };
  if (endedAt === undefined)
    return [spawned, { at: Number.MAX_SAFE_INTEGER, text: `sub-agent ${id} is ${state}` }];
  const told = toldWords[child.told ?? 'none'] ?? toldWords.none;
  const used = `tokens: ${child.tokens}, ${dollars(child.cost)}`;
  return [spawned, { at: endedAt, text: `sub-agent ${id} ended (${child.status}), ${used}; ${told}` }];
}

const toldWords: Readonly<Record<string, string>> = {
  tool: 'its result went to the call that waits',
  lane: "its result went into its parent's lane",
  none: 'nobody was waiting for its result',
};

function modelCallFact(call: ModelCallFacts): Fact {
  const purpose = call.purpose === 'turn' ? '' : ` (${call.purpose})`;
  const tools = call.isWithoutTools ? ', without tools, since it takes none' : '';
  return { at: call.at, text: `model ${call.model}${purpose}: ${modelCallText(call)}${tools}` };
}

function modelCallText({ state, cost, latencyMs, ...tokens }: ModelCallFacts): string {
  if (state === 'open') return 'asked, no answer yet';
  if (state === 'void') return 'not counted, so it cost nothing';
  if (state === 'unknown') return `broke off uncounted: ${dollars(cost)} at most, ${latencyMs} ms`;
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
    text: `tool ${name} (${callId}): ${state === 'done' ? toolCallEnd(call) : state}`,
  };
}

function toolCallEnd({ startedAt, endedAt, isError, isUnknown }: ToolCallFacts): string {
  if (isUnknown) return 'interrupted, outcome unknown';
  // Refused, skipped or cancelled before it began.
  if (startedAt === undefined) return isError ? "didn't run" : 'done';
  const tookMs = endedAt === undefined ? '' : ` in ${endedAt - startedAt} ms`;
  return `${isError ? 'failed' : 'done'}${tookMs}`;
}

function partFact(part: PartFacts): Fact {
  const { key, purpose, conversationKey, createdAt, endedAt, excerpt, attempts } = part;
  const words = excerpt === undefined ? '' : ` “${excerpt}”`;
  const reason = part.problem === undefined ? '' : ` (${part.problem})`;
  const tried = attempts > 1 ? `, ${attempts} attempts` : '';
  return {
    at: endedAt ?? createdAt,
    text: `${purpose} ${key} to ${conversationKey}: ${stateOf(part)}${reason}${tried}${words}`,
  };
}

function stateOf({ state, messageIds, dueAt, askedToWait: asked }: PartFacts): string {
  switch (state) {
    case 'sent':
      return messageIds.length === 0 ? 'sent' : `sent as ${messageIds.join(', ')}`;
    case 'pending':
      return `to be sent at ${timeOf(dueAt)}${asked === undefined ? '' : waitOf(asked)}`;
    case 'sending':
      return 'being sent';
    case 'unknown':
      return 'unknown: it may or may not have arrived';
    case 'failed':
      return 'failed';
    default:
      return state satisfies never;
  }
}

/** The platform is asked again when the part is due, however long it said. */
function waitOf({ since, until }: NonNullable<PartFacts['askedToWait']>): string {
  return `; its platform has asked to wait since ${timeOf(since)}, now until ${timeOf(until)}`;
}

/** How the message ended, or what it waits for: its place in the account that all others add up to. */
function endOf(item: ItemFacts, parts: readonly PartFacts[]): string {
  const name = shortNameOf(item);
  const { state, outcome, runId, ahead, dueAt } = item;
  const why = item.outcomeReason === undefined ? '' : ` (${item.outcomeReason})`;
  switch (state) {
    case 'held':
      return `${name} is held until ${timeOf(dueAt)}, waiting for the rest`;
    case 'waiting':
      return `${name} is waiting, ${ahead ?? 0} before it, due at ${timeOf(dueAt)}`;
    case 'taken':
      return `${name} is being answered by run ${runId}`;
    case 'ended': {
      const into = runId === undefined ? 'the next run of its lane' : `run ${runId}`;
      if (outcome === 'merged') return `${name} ended: merged into ${into}${why}`;
      const how = outcome ?? 'without an outcome, which is a defect';
      const soFar = item.isProvisional ? ' (delivery pending)' : '';
      return `${name} ended: ${how}${soFar}${why}${answeredBy(item, parts)}`;
    }
    default:
      return state satisfies never;
  }
}

function answeredBy({ answer }: ItemFacts, parts: readonly PartFacts[]): string {
  const keys = parts
    .filter((part) => part.answer === answer && part.purpose !== 'preview')
    .map(({ key }) => key);
  return answer === undefined || keys.length === 0 ? '' : ` by ${keys.join(', ')}`;
}

function costs(runs: readonly RunFacts[]): readonly string[] {
  const calls = runs.flatMap((run) => run.modelCalls);
  if (calls.length === 0) return [];
  const cost = calls.reduce((sum, call) => sum + call.cost, 0);
  return [`cost: ${dollars(cost)} in ${calls.length} model ${calls.length === 1 ? 'call' : 'calls'}`];
}

function dollars(micro: number): string {
  return `$${(micro / 1e6).toFixed(6)}`;
}

const timeWidth = 24;

/** Takes any stored value. */
function timeOf(at: number): string {
  return at === Number.MAX_SAFE_INTEGER ? 'now' : timeText(at);
}
