import { type CallRate, isUncounted, type UncountedAgents } from '#contracts/call-ledger.ts';
import type { ReasoningLevel, TurnModels } from '#contracts/model.ts';
import type { Authority } from '#contracts/outcome.ts';
import type { QueueMode } from '#contracts/queue-settings.ts';
import { type RunTarget, routeOf } from '#contracts/route.ts';
import type { RunKind } from '#contracts/run-kind.ts';
import type { StepTx, StoreCommand, Tx } from '../base/command.ts';
import { accountKeyOf } from '../base/conversation-key.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { json, targetText } from '../base/json.ts';
import { isChildLane } from '../children/child-rows.ts';
import { hasRoom } from '../children/class-room.ts';
import { treeOf } from '../children/tree-of.ts';
import { insertNotice } from '../delivery/insert-notice.ts';
import { type Choice, chooseBatch } from '../items/choose-batch.ts';
import type { WaitingRow } from '../items/waiting-rows.ts';
import { callIdOf, closeLostCalls, openModelCall } from '../money/model-calls.ts';
import { expireCalls } from '../rows/call-states.ts';
import { endItems, takeItem } from '../rows/item-states.ts';
import { giveUpLease, holdLane } from '../rows/lane-leases.ts';
import type { Lane } from '../rows/lane-row.ts';
import { beginRun, resumeRun } from '../rows/run-states.ts';
import { hasWaitedInVain } from '../waits/budget-waits.ts';
import { isParked } from '../waits/parked.ts';
import { giveUpRun } from './give-up-run.ts';
import { type ClaimFacts, lockForClaim } from './lock-claim.ts';
import { type TextFraming, takeRows } from './take-rows.ts';
import { enqueueTitle, openingRunOf, sessionNamedIn } from './titles.ts';

/** The lane to claim and the limits of the claim; times in ms. */
export type ClaimInput = {
  readonly laneKey: string;
  readonly holder: string;
  readonly leaseMs: number;
  /** Id of the run to begin, should one begin whose first item has not reserved another. */
  readonly newRunId: string;
  readonly framing: TextFraming;
  /** A run that was found unfinished this often is given up with a notice. */
  readonly maxAttempts: number;
  /**
   * Bounds calls of each model, by its name: the claim opens the row of the first call. One that a budget counts
   * reserves its own.
   */
  readonly rates?: Readonly<Record<string, CallRate>> | undefined;
  /** Agents whose calls no budget counts; absent: all. */
  readonly uncounted?: UncountedAgents | undefined;
  /** Models that answer, for sessions that have not chosen one. */
  readonly models: TurnModels;
  /** Models that name sessions; absent: no session that begins gets a title. */
  readonly titleModels?: TurnModels | undefined;
  /** How many lanes of a sub-agents' class run at once, over all processes; no limit for a class without. */
  readonly caps?: Readonly<Partial<Record<string, number>>> | undefined;
};

/** A run that this holder may execute until its lease expires. */
export type ClaimedRun = {
  readonly runId: string;
  readonly kind: RunKind;
  readonly laneKey: string;
  readonly epoch: number;
  readonly sessionId: string;
  readonly agentId: string;
  readonly chatKind: 'dm' | 'group';
  readonly class: string;
  readonly target: RunTarget;
  readonly authority: Authority;
  /** Name of its model, fixed when it began. */
  readonly model: string;
  /** Chosen for its session; absent: its agent's. */
  readonly reasoning?: ReasoningLevel;
  /** The row of its first model call, opened with the claim. */
  readonly openCall?: string;
  readonly isResumed: boolean;
  /** It has taken its session's first message. */
  readonly beginsSession?: true;
  /** It was asked to stop while nobody worked on it: it does nothing more but end. */
  readonly cancelReason?: string;
  /** Its wait for room in a budget was over before there was any, and no new day brings some. */
  readonly hasWaited?: true;
  /** How long it had worked when it was parked last, ms. */
  readonly workedMs: number;
  readonly startedAt: number;
  readonly now: number;
};

/** The result of claiming a lane. */
export type Claim =
  | { readonly kind: 'run'; readonly run: ClaimedRun }
  /** Something was done in the lane's order without a run: look again. */
  | { readonly kind: 'again'; readonly effects: Effects }
  | { readonly kind: 'busy'; readonly class: string; readonly delayMs: number }
  | { readonly kind: 'armed'; readonly class: string; readonly delayMs: number }
  /** Its run waits for something outside; ending the wait wakes the lane, and the sweep finds one that expires. */
  | { readonly kind: 'parked' }
  /** As many lanes of its class run as may; the end of one of them wakes the next. */
  | { readonly kind: 'full' }
  | { readonly kind: 'idle' };

/**
 * Steps 4 and 5, claim and take, in one transaction: no live lease → a new epoch, and either the
 * unfinished run to resume, or a new run with its messages in the transcript. Repeating it under a
 * live lease of the same holder is refused as `busy` unless that holder's run has ended.
 */
export const claimLane: StoreCommand<ClaimInput, Claim> = {
  name: 'claimLane',
  run: async (tx, input) => {
    const facts = await lockForClaim(tx, input.laneKey);
    return facts ? claimBy(tx, input, facts) : { kind: 'idle' };
  },
};

/** The step itself, for a caller that has locked the lane and read what the claim goes by. */
export async function claimBy(tx: StepTx, input: ClaimInput, facts: ClaimFacts): Promise<Claim> {
  const { lane, waiting } = facts;
  const isMine = lane.holder === input.holder && lane.runId === null;
  if (lane.leaseUntil > tx.now && !isMine)
    return (await isParked(tx, lane))
      ? { kind: 'parked' }
      : { kind: 'busy', class: lane.class, delayMs: lane.leaseUntil - tx.now };
  if (lane.runId !== null) return resume(tx, { lane, input, runId: lane.runId });
  const isFull = !(await mayRun(tx, lane, input));
  const choice = chooseBatch(waiting, lane.mode as QueueMode, tx.now);
  const work = workOf(tx, lane, choice);
  if (work && !isFull) return begin(tx, { ...facts, input, ...work });
  if (choice.kind === 'command' && !work) return runCommand(tx, { lane, row: choice.row });
  if (lane.holder !== null) await giveUpLease(tx, lane.key, 0);
  if (work) return { kind: 'full' };
  return choice.kind === 'later'
    ? { kind: 'armed', class: lane.class, delayMs: choice.dueAt - tx.now }
    : { kind: 'idle' };
}

type Work = { readonly kind: RunKind; readonly rows: readonly WaitingRow[] };

/** The run to begin, if the choice is one: a command may ask for a run of its own. */
function workOf({ chatCommands }: StepTx, { key }: Lane, choice: Choice<WaitingRow>): Work | undefined {
  if (choice.kind === 'run')
    return { kind: sessionNamedIn(key) === undefined ? 'turn' : 'title', rows: choice.rows };
  if (choice.kind !== 'command') return undefined;
  const kind = chatCommands.get(choice.row.content.command?.name ?? '')?.begins;
  return kind && { kind, rows: [choice.row] };
}

async function mayRun(tx: Tx, lane: Lane, { caps }: ClaimInput): Promise<boolean> {
  const cap = isChildLane(lane.key) ? caps?.[lane.class] : undefined;
  return cap === undefined || hasRoom(tx, lane, cap);
}

type BeginRunInput = Work & ClaimFacts & { readonly input: ClaimInput };

async function begin(
  tx: StepTx,
  { lane, input, kind, rows, session, context }: BeginRunInput,
): Promise<Claim> {
  const [head] = rows;
  const last = rows.at(-1);
  if (!head || !last) return { kind: 'idle' };
  const epoch = lane.epoch + 1;
  const runId = head.reservedRunId ?? input.newRunId;
  const treeId = (await treeOf(tx, lane, head)) ?? (await openingRunOf(tx, lane.key)) ?? runId;
  const choice = {
    model: session?.model ?? modelFor(lane, kind, input),
    reasoning: session?.reasoning ?? null,
  };
  await beginRun(tx, {
    id: runId,
    laneKey: lane.key,
    sessionId: lane.sessionId,
    kind,
    epoch,
    route: targetText(last.target),
    authority: last.authority,
    treeId,
    ...choice,
  });
  await hold(tx, { lane, input, epoch, runId });
  const isFirst = session?.isBegun === false;
  await take(tx, { lane, input, kind, rows, runId, context, isFirst });
  const beginsSession = isFirst && kind === 'turn';
  const { target, authority } = last;
  const facts = { runId, kind, epoch, target, authority, ...choice, isResumed: false, workedMs: 0 };
  const run = claimed(lane, { ...facts, startedAt: tx.now, now: tx.now });
  const openCall = await openFirstCall(tx, run, input);
  return {
    kind: 'run',
    run: { ...run, ...(openCall !== undefined && { openCall }), ...(beginsSession && { beginsSession }) },
  };
}

function modelFor({ agentId }: Lane, kind: RunKind, { models, titleModels }: ClaimInput): string {
  const { byAgent, byDefault } = kind === 'title' ? (titleModels ?? models) : models;
  return byAgent[agentId] ?? byDefault;
}

type TakeInput = Work & {
  readonly lane: Lane;
  readonly input: ClaimInput;
  readonly runId: string;
  readonly context: readonly string[];
  readonly isFirst: boolean;
};

/** Takes the rows into the run. */
async function take(
  tx: StepTx,
  { lane, input, kind, rows, runId, context, isFirst }: TakeInput,
): Promise<void> {
  if (kind === 'compact') {
    // The model reads nothing of it: it stays out of the transcript.
    for (const { id } of rows)
      await takeItem(tx, { id, runId, transcriptId: null, isMerged: false, isKept: false });
    return;
  }
  // The time is no part of a conversation's beginning.
  const framing = kind === 'title' ? { ...input.framing, now: '' } : input.framing;
  const messages = await takeRows(tx, { lane, runId, framing, rows, context, merges: true });
  if (input.titleModels && isFirst) await enqueueTitle(tx, { lane, rows, messages });
}

async function openFirstCall(
  tx: Tx,
  run: ClaimedRun,
  { rates, uncounted = 'all' }: ClaimInput,
): Promise<string | undefined> {
  const { runId, sessionId, epoch, model, kind } = run;
  if (kind === 'compact' || !isUncounted(uncounted, run)) return undefined;
  const rate = rates && Object.hasOwn(rates, model) ? rates[model] : undefined;
  if (rate === undefined) return undefined;
  const id = callIdOf(epoch, 1);
  await openModelCall(tx, { id, runId, sessionId, purpose: kind, rate });
  return id;
}

/** An attempt without a failure of its own: nobody was left to record one. */
const noFailure = 'its last process ended in the middle of it, or lost its lease';

async function resume(
  tx: StepTx,
  { lane, input, runId }: { lane: Lane; input: ClaimInput; runId: string },
): Promise<Claim> {
  const run = await tx.db.selectFrom('runs').selectAll().where('id', '=', runId).executeTakeFirstOrThrow();
  const attempts = run.attempts + (run.isHandedOver ? 0 : 1);
  const epoch = lane.epoch + 1;
  if (attempts > input.maxAttempts) {
    const effects = await giveUpRun(
      tx,
      { ...lane, epoch },
      { run, text: tx.texts.restartGaveUp, endReason: 'gave_up', detail: run.detail ?? noFailure },
    );
    return { kind: 'again', effects };
  }
  await closeLostCalls(tx, runId);
  // Only now: the end of a run locks lanes, and a class comes after them.
  if (!(await mayRun(tx, lane, input))) return { kind: 'full' };
  // Nobody has ended the wait, and the lane's lease is over: the wait has expired.
  if (run.state === 'parked') await expireCalls(tx, runId);
  await resumeRun(tx, { id: runId, attempts, epoch });
  await hold(tx, { lane, input, epoch, runId });
  const target = json.target(run.route);
  const { kind, sessionId, workedMs, startedAt, cancelReason } = run;
  // Authority was written by us at the start of the run.
  const authority = run.authority as Authority;
  return {
    kind: 'run',
    run: {
      ...claimed(lane, {
        runId,
        kind,
        epoch,
        target,
        authority,
        model: run.model,
        reasoning: run.reasoning,
        isResumed: true,
        workedMs,
        startedAt,
        now: tx.now,
      }),
      sessionId,
      ...(cancelReason !== null && { cancelReason }),
      ...(run.state === 'parked' && hasWaitedInVain(run.budgetWait) && { hasWaited: true }),
    },
  };
}

/** A command in its lane's order: its effect, its answer and its end are one transaction. */
async function runCommand(tx: StepTx, { lane, row }: { lane: Lane; row: WaitingRow }): Promise<Claim> {
  const effects = noEffects();
  const { senderId, conversationKey, content } = row;
  const route = routeOf(row.target);
  const laneKey = lane.key;
  const partKey = (name: string) => `${row.id}:${name}`;
  const step = tx.chatCommands.get(content.command?.name ?? '');
  if (!step || !route) {
    // Stored by a version that had the command.
    await endItems(tx, [row.id], { outcome: 'failed', outcomeReason: 'unknown-command' });
    return { kind: 'again', effects };
  }
  const account = accountKeyOf(route);
  const scene = { account, senderId, conversationKey, route, laneKey, partKey, effects, number: row.seq };
  const { text } = await step.run(tx, { ...scene, lane: async () => lane }, content.command?.input);
  await endItems(tx, [row.id], { outcome: 'answered', outcomeReason: 'command' });
  if (text !== undefined) {
    const notice = { key: partKey('answer'), route, text, laneKey };
    effects.deliveries.push(await insertNotice(tx, notice));
  }
  return { kind: 'again', effects };
}

async function hold(
  tx: Tx,
  { lane, input, epoch, runId }: { lane: Lane; input: ClaimInput; epoch: number; runId: string },
): Promise<void> {
  const leaseUntil = tx.now + input.leaseMs;
  await holdLane(tx, { laneKey: lane.key, epoch, runId, holder: input.holder, leaseUntil });
}

type RunFacts = Pick<
  ClaimedRun,
  'runId' | 'kind' | 'epoch' | 'target' | 'isResumed' | 'workedMs' | 'startedAt' | 'now'
> & {
  readonly authority: string;
  readonly model: string;
  readonly reasoning: string | null;
};

function claimed(lane: Lane, { reasoning, ...facts }: RunFacts): ClaimedRun {
  return {
    ...facts,
    // Written by `/think`, which takes only levels.
    ...(reasoning !== null && { reasoning: reasoning as ReasoningLevel }),
    laneKey: lane.key,
    sessionId: lane.sessionId,
    agentId: lane.agentId,
    chatKind: lane.chatKind === 'dm' ? 'dm' : 'group',
    class: lane.class,
    authority: facts.authority as Authority,
  };
}
