import { type CallRate, isUncounted, type UncountedAgents } from '#contracts/call-ledger.ts';
import type { DisplayChoice } from '#contracts/display.ts';
import type { RunKind, RunOverride } from '#contracts/inbox-item.ts';
import type { MarkSettings } from '#contracts/mark.ts';
import type { ReasoningLevel, TurnModels } from '#contracts/model.ts';
import type { Authority } from '#contracts/outcome.ts';
import type { QueueMode } from '#contracts/queue-settings.ts';
import { type RunTarget, routeOf } from '#contracts/route.ts';
import { endOpenQuestions } from '../approvals/call-approval.ts';
import type { StepTx, StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { json, targetText } from '../base/json.ts';
import { accountKeyOf } from '../base/keys.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { isChildLane, lockAbove, treeOf } from '../children/child.ts';
import { hasRoom } from '../children/class-room.ts';
import { insertNotice } from '../delivery/part.ts';
import { type Choice, chooseBatch } from '../items/choose-batch.ts';
import { readWaiting, type WaitingRow } from '../items/waiting-items.ts';
import { callIdOf, closeLostCalls, openModelCall } from '../money/model-call.ts';
import { endItems, takeItem } from '../rows/item.ts';
import { giveUpLease, holdLane, type Lane, lockAndReadLanes } from '../rows/lane.ts';
import { beginRun, resumeRun } from '../rows/run.ts';
import { expireCalls } from '../rows/tool-call.ts';
import { taskIn } from '../tasks/task.ts';
import { isWaitExhausted } from '../waits/budget-waits.ts';
import { isParked } from '../waits/parked.ts';
import { giveUpRun } from './end-run.ts';
import { displayChoiceOf, readChoice, type SessionChoice } from './session.ts';
import { isHeartbeatOnly, type TextFraming, takeRows } from './take-rows.ts';
import { enqueueTitle, openingRunOf, sessionNamedIn } from './titles.ts';

/** The lane to claim and the limits of the claim; times in ms. */
export type ClaimInput = {
  readonly laneKey: string;
  readonly holder: string;
  readonly leaseMs: number;
  /** Id for a run that begins, unless its first item has reserved one. */
  readonly newRunId: string;
  readonly framing: TextFraming;
  /** After this many attempts an unfinished run is given up with a notice. */
  readonly maxAttempts: number;
  /**
   * Rates that bound the cost of calls, by model name. With one, the claim opens the row of the first call, unless a
   * budget counts the call: then the call reserves its own row.
   */
  readonly rates?: Readonly<Record<string, CallRate>> | undefined;
  /** Agents whose calls aren't counted by any budget; absent: all. */
  readonly uncounted?: UncountedAgents | undefined;
  /** Models for sessions that haven't chosen one. */
  readonly models: TurnModels;
  /** Models that name sessions; absent: new sessions get no title. */
  readonly titleModels?: TurnModels | undefined;
  /** How many lanes of each sub-agent class may run at once, across all processes; unlimited without a cap. */
  readonly caps?: Readonly<Partial<Record<string, number>>> | undefined;
  /** Marks for the messages that a run takes; absent: none. */
  readonly marks?: MarkSettings | undefined;
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
  /** Name of its model, fixed when the run began. */
  readonly model: string;
  /** Chosen for its session; absent: the agent's default applies. */
  readonly reasoning?: ReasoningLevel;
  /** Chosen in its conversation. */
  readonly display: DisplayChoice;
  /** The row of its first model call, opened with the claim. */
  readonly openCall?: string;
  readonly isResumed: boolean;
  /** Set by the program whose message began it. */
  readonly override?: RunOverride;
  /** Present if it took nothing but what schedules have fired, so that nobody waits for its answer. */
  readonly isHeartbeat?: true;
  /** Present if the run took its session's first message. */
  readonly beginsSession?: true;
  /** Cancelled while unclaimed; it only needs ending. */
  readonly cancelReason?: string;
  /** Its wait for room in a budget expired without any, and a new day won't bring any. */
  readonly hasWaited?: true;
  /** How long it had worked when it was last parked, ms. */
  readonly workedMs: number;
  readonly startedAt: number;
  readonly now: number;
};

/** The result of claiming a lane. */
export type Claim =
  /** `expired`: effects of its wait's expiry, which is part of the claim. */
  | { readonly kind: 'run'; readonly run: ClaimedRun; readonly expired?: Effects }
  /** Something in the lane's order was completed without a run: claim again. */
  | { readonly kind: 'again'; readonly effects: Effects }
  | { readonly kind: 'busy'; readonly class: string; readonly delayMs: number }
  | { readonly kind: 'armed'; readonly class: string; readonly delayMs: number }
  /** Its run waits for an outside result. Settling the wait wakes the lane; the sweep finds a wait that expires. */
  | { readonly kind: 'parked' }
  /** The lane's class is at its cap; when one of its lanes ends, the next is woken. */
  | { readonly kind: 'full' }
  | { readonly kind: 'idle' };

/**
 * Steps 4 and 5, claim and take, in one transaction. A lane without a live lease gets a new epoch, and either its
 * unfinished run is resumed or a new run begins, with its messages in the transcript. Repeating it under a live lease
 * of the same holder is rejected as `busy` unless that holder's run has ended.
 */
export const claimLane: StoreCommand<ClaimInput, Claim> = {
  name: 'claimLane',
  run: async (tx, input) => {
    const facts = await lockForClaim(tx, input.laneKey);
    return facts ? claimBy(tx, input, facts) : { kind: 'idle' };
  },
};

/** Performs the step for a caller that has locked the lane and read the claim's facts. */
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

/** Returns the run to begin, if the choice calls for one: a command may ask for its own run. */
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

async function begin(
  tx: StepTx,
  { lane, input, kind, rows, session, context }: Work & ClaimFacts & { readonly input: ClaimInput },
): Promise<Claim> {
  const [head] = rows;
  const last = rows.at(-1);
  if (!head || !last) return { kind: 'idle' };
  const epoch = lane.epoch + 1;
  const runId = head.reservedRunId ?? input.newRunId;
  const target = targetOf(lane, kind, last);
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
    route: targetText(target),
    authority: last.authority,
    treeId,
    taskItem: taskIn(head.sourceKey) === undefined ? null : head.sourceKey,
    ...choice,
  });
  await hold(tx, { lane, input, epoch, runId });
  const isFirst = session?.isBegun === false;
  await take(tx, { lane, input, kind, rows, runId, context, isFirst });
  const beginsSession = isFirst && kind === 'turn';
  const { authority } = last;
  const display = session ? displayChoiceOf(session) : {};
  const facts = { runId, kind, epoch, target, authority, ...choice, display, isResumed: false, workedMs: 0 };
  const run = claimed(lane, { ...facts, startedAt: tx.now, now: tx.now });
  const openCall = await openFirstCall(tx, run, input);
  const { override } = head.content;
  const isHeartbeat = isHeartbeatOnly(rows);
  return {
    kind: 'run',
    run: {
      ...run,
      ...(override && { override }),
      ...(openCall !== undefined && { openCall }),
      ...(beginsSession && { beginsSession }),
      ...(isHeartbeat && { isHeartbeat }),
    },
  };
}

/**
 * Returns the run's target. In the mode `followup` each waiting message has its own answer, so the target says whether
 * anything took a place in the lane after the message.
 */
function targetOf({ mode, nextSeq }: Lane, kind: RunKind, { target, seq }: WaitingRow): RunTarget {
  const isBehind = kind === 'turn' && mode === 'followup' && nextSeq > seq + 1;
  return target !== 'record' && isBehind ? { ...target, isBehind } : target;
}

function modelFor({ agentId }: Lane, kind: RunKind, { models, titleModels }: ClaimInput): string {
  const { byAgent, byDefault } = kind === 'title' ? (titleModels ?? models) : models;
  return byAgent[agentId] ?? byDefault;
}

/** Takes the rows into the run. */
async function take(
  tx: StepTx,
  work: Work & {
    readonly lane: Lane;
    readonly input: ClaimInput;
    readonly runId: string;
    readonly context: readonly string[];
    readonly isFirst: boolean;
  },
): Promise<void> {
  const { lane, input, kind, rows, runId, context, isFirst } = work;
  if (kind === 'compact') {
    // The model never reads the command, so it stays out of the transcript.
    for (const { id } of rows)
      await takeItem(tx, { id, runId, transcriptId: null, isMerged: false, isKept: false });
    return;
  }
  // A title depends only on the conversation's opening, not on the time.
  const framing = kind === 'title' ? { ...input.framing, now: '' } : input.framing;
  const { marks } = input;
  const messages = await takeRows(tx, { lane, runId, framing, rows, context, merges: true, marks });
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

/** Detail of an attempt whose process couldn't record a failure. */
const noFailure = 'its last process ended mid-run or lost its lease';

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
  // Not before: giving up a run locks lanes, and the class is locked after lanes.
  if (!(await mayRun(tx, lane, input))) return { kind: 'full' };
  // The lane's lease is over and the wait wasn't settled, so it has expired.
  const expired = run.state === 'parked' ? await expireWaits(tx, runId) : undefined;
  await resumeRun(tx, { id: runId, attempts, epoch });
  await hold(tx, { lane, input, epoch, runId });
  const target = json.target(run.route);
  const { kind, sessionId, workedMs, startedAt, cancelReason } = run;
  const override = await readOverride(tx, runId);
  const display = displayChoiceOf(await readChoice(tx, sessionId));
  // Written by Parley when the run began.
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
        display,
        isResumed: true,
        workedMs,
        startedAt,
        now: tx.now,
      }),
      sessionId,
      ...(override && { override }),
      ...(cancelReason !== null && { cancelReason }),
      ...(run.state === 'parked' && isWaitExhausted(run.budgetWait) && { hasWaited: true }),
    },
    ...(expired && { expired }),
  };
}

/** Only a message with a reserved run id may have one; it has begun that run. */
async function readOverride(tx: Tx, runId: string): Promise<RunOverride | undefined> {
  const item = await tx.db
    .selectFrom('inbox')
    .select('content')
    .where('reservedRunId', '=', runId)
    .executeTakeFirst();
  return item && json.content(item.content).override;
}

async function expireWaits(tx: StepTx, runId: string): Promise<Effects> {
  const effects = noEffects();
  await expireCalls(tx, runId);
  await endOpenQuestions(tx, runId, 'expired', effects);
  return effects;
}

/** Runs a command in its lane's order: its effect, answer and outcome are one transaction. */
async function runCommand(tx: StepTx, { lane, row }: { lane: Lane; row: WaitingRow }): Promise<Claim> {
  const effects = noEffects();
  const { senderId, conversationKey, content } = row;
  const route = routeOf(row.target);
  const laneKey = lane.key;
  const partKey = (name: string) => `${row.id}:${name}`;
  const step = tx.chatCommands.get(content.command?.name ?? '');
  if (!step || !route) {
    // Stored by another version, which knew the command.
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
  'runId' | 'kind' | 'epoch' | 'target' | 'display' | 'isResumed' | 'workedMs' | 'startedAt' | 'now'
> & {
  readonly authority: string;
  readonly model: string;
  readonly reasoning: string | null;
};

function claimed(lane: Lane, { reasoning, ...facts }: RunFacts): ClaimedRun {
  return {
    ...facts,
    // Written by `/think`, which accepts only levels.
    ...(reasoning !== null && { reasoning: reasoning as ReasoningLevel }),
    laneKey: lane.key,
    sessionId: lane.sessionId,
    agentId: lane.agentId,
    chatKind: lane.chatKind === 'dm' ? 'dm' : 'group',
    class: lane.class,
    authority: facts.authority as Authority,
  };
}

/** A session's choices for its runs, and whether it has a message from anyone; notes don't count. */
type SessionFacts = SessionChoice & {
  readonly isBegun: boolean;
};

/** Everything a claim depends on, read under the lane's lock. */
export type ClaimFacts = {
  readonly lane: Lane;
  readonly waiting: readonly WaitingRow[];
  readonly session: SessionFacts | undefined;
  /** Remembered messages that no run has been shown, each as stored. */
  readonly context: readonly string[];
};

/** Locks the lane and its ancestors, and reads what its claim depends on; undefined if there is no such lane. */
async function lockForClaim(tx: Tx, laneKey: string): Promise<ClaimFacts | undefined> {
  await lockAbove(tx, laneKey);
  return (await lockForClaims(tx, [laneKey])).get(laneKey);
}

/**
 * Does the same for lanes without ancestors. Everything is requested in one round trip, the locks first: PostgreSQL
 * answers in that order, so no row that is read can predate its lock.
 */
export async function lockForClaims(tx: Tx, laneKeys: readonly string[]): Promise<Map<string, ClaimFacts>> {
  const [lanes, ...facts] = await Promise.all([
    lockAndReadLanes(tx, laneKeys),
    ...laneKeys.map(async (key) => [key, await readFacts(tx, key)] as const),
  ]);
  const factsOf = new Map(facts);
  return new Map(
    lanes.flatMap((lane) => {
      const known = factsOf.get(lane.key);
      return known ? [[lane.key, { lane, ...known }]] : [];
    }),
  );
}

async function readFacts(tx: Tx, laneKey: string): Promise<Omit<ClaimFacts, 'lane'>> {
  const [waiting, rows] = await Promise.all([
    readWaiting(tx, laneKey),
    sessionWithContext.all(tx, { laneKey }),
  ]);
  const [session] = rows;
  return {
    waiting,
    session: session && { ...session, isBegun: Boolean(session.isBegun) },
    context: rows.flatMap(({ content }) => content ?? []),
  };
}

/** The lane's session, once for each message that no run has been shown, or once if there are none. */
const sessionWithContext = prepared((db, of: QueryParams<{ laneKey: string }>) =>
  db
    .selectFrom('lanes')
    .innerJoin('sessions', 'sessions.id', 'lanes.sessionId')
    .leftJoin('groupContext', (join) =>
      join.onRef('groupContext.laneKey', '=', 'lanes.key').on('groupContext.shownInRun', 'is', null),
    )
    .select(['sessions.model', 'sessions.reasoning', 'sessions.verbose', 'sessions.reasoningShown'])
    .select('groupContext.content')
    .select((eb) =>
      eb
        .exists(
          eb
            .selectFrom('transcript')
            .select('transcript.id')
            .whereRef('transcript.sessionId', '=', 'sessions.id')
            .where('transcript.role', '=', 'user'),
        )
        .as('isBegun'),
    )
    .where('lanes.key', '=', of.laneKey)
    .orderBy('groupContext.seq'),
);
