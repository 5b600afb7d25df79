import type { FileFacts, ItemFacts, LaneRunFacts } from '../store/reads/why/read-items.ts';
import type { PartFacts } from '../store/reads/why/read-parts.ts';
import type { RunFacts } from '../store/reads/why/read-runs.ts';
import type { MessageTrace } from '../store/reads/why/trace.ts';
import { type Fact, timeOf } from './fact-lines.ts';

/** Describes a message's history until a run took it. */
export function itemFacts(item: ItemFacts): readonly Fact[] {
  const { id, arrivedAt, laneKey, sender, authority, excerpt, notifiedAt, takenAt, runId } = item;
  const name = shortNameOf(item);
  const words = excerpt === undefined ? '' : ` “${excerpt}”`;
  const facts = [
    {
      at: arrivedAt,
      text: `${name} from ${sender} (${authority}) entered lane ${laneKey} as ${id}${words}`,
    },
  ];
  for (const file of item.files) facts.push({ at: arrivedAt, text: `${name}: ${fileText(file)}` });
  if (item.override) facts.push({ at: arrivedAt, text: `${name} ${overrideText(item.override)}` });
  for (const { kind, by, at } of item.changes)
    facts.push({ at, text: `${name} was ${changeWords[kind] ?? kind} by ${by}` });
  if (notifiedAt !== undefined)
    facts.push({ at: notifiedAt, text: `${name}: a notice that it is waiting was queued for its sender` });
  if (takenAt !== undefined) {
    const how = item.joined === 'steered' ? 'steered into' : 'taken by';
    facts.push({ at: takenAt, text: `${name} was ${how} run ${runId} as ${item.transcriptId}` });
  }
  return facts;
}

const changeWords: Readonly<Record<string, string>> = {
  cancel: 'cancelled',
  promote: 'moved up',
  edit: 'edited',
  interrupt: 'put first (interrupt)',
};

function overrideText({ timeoutMs, promptChars }: NonNullable<ItemFacts['override']>): string {
  const set = [
    ...(timeoutMs === undefined ? [] : [`at most ${timeoutMs / 1000} s`]),
    ...(promptChars === undefined ? [] : [`instructions of its own (${promptChars} characters)`]),
  ];
  return `gets a run of its own, with ${set.join(' and ')}`;
}

const fileEnds = { refused: 'was refused', failed: 'is missing' } as const;
const readings = {
  pending: 'being read',
  text: 'read as text',
  image: 'shown as a smaller image',
  transcript: 'written down by the transcriber',
  unread: 'not read',
} as const;

function fileText(file: FileFacts): string {
  if (file.kind === 'missing') return `a file that came with it ${fileEnds[file.end]}: ${file.reason}`;
  const { mimeType, sizeBytes, read, reason } = file;
  const reading = read === undefined ? '' : `; ${readings[read]}${reason === undefined ? '' : `: ${reason}`}`;
  return `a file came with it (${mimeType}, ${sizeBytes} bytes${reading})`;
}

function shortNameOf({ messageId, kind }: ItemFacts): string {
  return messageId === undefined ? `a ${kind}` : `${kind} ${messageId}`;
}

/** Says how the message ended or what it is waiting for: the conclusion of its trace. */
export function itemEnd(item: ItemFacts, { items, parts, runs }: MessageTrace): string {
  const name = shortNameOf(item);
  const { state, outcome, runId, dueAt } = item;
  switch (state) {
    case 'held':
      return `${name} is held until ${timeOf(dueAt)}, for the rest of its album or text`;
    case 'waiting':
      return `${name} ${waitOf(item)}`;
    case 'taken':
      return `${name} ${takenBy(runs.find(({ id }) => id === runId) ?? runId)}`;
    case 'ended': {
      const why = item.outcomeReason === undefined ? '' : ` (${item.outcomeReason})`;
      if (outcome === 'merged') return `${name} ended: merged into ${mergedInto(item, items)}${why}`;
      const how = outcomeWords(outcome);
      const soFar = item.isProvisional ? ' (delivery pending)' : '';
      return `${name} ended: ${how}${soFar}${why}${answerOf(item, parts)}`;
    }
    default:
      return state satisfies never;
  }
}

function outcomeWords(outcome: string | undefined): string {
  if (outcome === 'silent') return 'silent, because the agent chose not to answer';
  return outcome ?? 'without an outcome, which is a defect';
}

function waitOf(item: ItemFacts): string {
  const { dueAt, isDue, isFetching } = item;
  const before = beforeIt(item);
  const behind = before.length === 0 ? '' : `behind ${before.join(' and ')}`;
  const and = behind === '' ? '' : `, ${behind}`;
  if (isFetching) return `is waiting for its files, until ${timeOf(dueAt)} at the latest${and}`;
  if (!isDue) return `is waiting until ${timeOf(dueAt)} for more messages to join it${and}`;
  if (behind !== '') return `is waiting ${behind}`;
  return `has been due since ${timeOf(dueAt)}; the next free worker will take it`;
}

function beforeIt({ ahead = 0, laneRun: run }: ItemFacts): readonly string[] {
  const messages = ahead === 0 ? [] : [`${ahead} ${ahead === 1 ? 'message' : 'messages'}`];
  return run === undefined ? messages : [...messages, `run ${run.id}, which ${laneRunState(run)}`];
}

function laneRunState({ parkedAt, parkReason }: LaneRunFacts): string {
  return parkedAt === undefined
    ? 'is still open'
    : `has been waiting for ${awaitedBy(parkReason)} since ${timeOf(parkedAt)}`;
}

/** Names what a parked run is waiting for. */
export function awaitedBy(parkReason: string | undefined): string {
  return parkReason ?? 'an answer from outside';
}

function takenBy(run: RunFacts | string | undefined): string {
  if (typeof run !== 'object') return `is being answered by run ${run}`;
  if (run.parkedAt !== undefined)
    return `is with run ${run.id}, which is waiting for ${awaitedBy(run.parkReason)}`;
  if (run.isHandedOver) return `is with run ${run.id}, which is waiting for a worker`;
  return `is being answered by run ${run.id}`;
}

/** Names the run and, if known, the message that carries the outcome of a merged one. */
function mergedInto({ id, runId }: ItemFacts, items: readonly ItemFacts[]): string {
  if (runId === undefined) return 'the next run of its lane';
  const other = items.find((one) => one.runId === runId && one.id !== id && one.outcome !== 'merged');
  return other === undefined ? `run ${runId}` : `run ${runId}, with ${shortNameOf(other)}`;
}

function answerOf({ outcome, answer }: ItemFacts, parts: readonly PartFacts[]): string {
  const keys = parts
    .filter((part) => part.answer === answer && part.purpose !== 'preview')
    .map(({ key }) => key);
  if (answer === undefined || keys.length === 0) return '';
  return outcome === 'answered' ? ` with ${keys.join(', ')}` : `, see ${keys.join(', ')}`;
}
