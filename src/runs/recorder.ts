/**
 * Records a run while it happens. Each event of the loop is handled before the loop continues, so every commit here is
 * a barrier: a tool never starts before its call is on record, and an answer is on record before any of it is sent.
 */
import type { AgentEvent } from '#contracts/agent-event.ts';
import type { Capabilities } from '#contracts/capabilities.ts';
import type { DisplayChoice } from '#contracts/display.ts';
import type { Log } from '#contracts/log.ts';
import type { MarkSettings } from '#contracts/mark.ts';
import { type AgentMessage, finishReasonOf, textOf, toolCallsOf } from '#contracts/message.ts';
import type { ModelEvent, ModelFailure } from '#contracts/model.ts';
import { type ReplyRoute, routeOf } from '#contracts/route.ts';
import type { Mark } from '../agent/repair-history.ts';
import { leadsOf } from '../replies/answer-leads.ts';
import { confirmedSends } from '../replies/dedupe.ts';
import { type ReplyToMode, readableText } from '../replies/reply-pipeline.ts';
import { anySource, dependsOnContext, type SilenceContext } from '../replies/silence.ts';
import type { TextShaper } from '../replies/text-shaper.ts';
import { raiseAlert } from '../store/alerts/alert.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { isAnnouncement } from '../store/children/child.ts';
import type { ClaimedDelivery, DeliveryPolicy } from '../store/delivery/claim-delivery.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { type CommitAnswerInput, commitAnswer, endRun } from '../store/lanes/commit-answer.ts';
import {
  type AssistantImage,
  commitToolTurn,
  endToolTurn,
  markUnsendable,
  saveImage,
} from '../store/lanes/commit-turn.ts';
import type { LaneExit } from '../store/lanes/end-run.ts';
import type { PriorToolResult } from '../store/lanes/recover-run.ts';
import { type Boundary, needsBoundary, type SteerContext, takeSteers } from '../store/lanes/steer.ts';
import { readTakenOrigins, type TakenOrigin, type TextFraming } from '../store/lanes/take-rows.ts';
import type { BudgetRefusal } from '../store/money/budget.ts';
import { readIsSeen } from '../store/reads/own-messages.ts';
import type { RunFence } from '../store/rows/run.ts';
import type { ChatTexts } from '../texts/chat-texts.ts';
import type { StopReason } from './active-runs.ts';
import type { AnswerBlocks, OpenBlocks } from './answer-blocks.ts';
import { type BusyNotice, createBusyNotice } from './busy-notice.ts';
import type { RunCalls } from './call-ledger.ts';
import {
  type AnswerScene,
  type AnswerShaping,
  answerParts,
  outcomeOf,
  planAnswer,
  planEnd,
} from './plan-answer.ts';
import { contextFull } from './run-compaction.ts';
import { ToolTurns, type ToolTurnsDeps } from './tool-turns.ts';

export type RecorderDeps = ToolTurnsDeps & {
  readonly log: Log;
  readonly texts: ChatTexts;
  readonly capabilities: Capabilities;
  readonly replyToMode: ReplyToMode;
  readonly shaper: TextShaper;
  readonly calls: RunCalls;
  readonly display: DisplayChoice;
  /** Marks for messages that join the run; absent: none. */
  readonly marks?: MarkSettings | undefined;
  /** Present if answers are sent in blocks. */
  readonly openBlocks?: OpenBlocks | undefined;
  readonly turnLimit: number;
  readonly steerDelivery: 'one-at-a-time' | 'all';
  framing(): TextFraming;
  start(effects: Effects): void;
  readonly outbox: Outbox;
  /** Has hooks judge the complete text of an answer. */
  readonly prepare?: AnswerShaping['prepare'];
  mayKeepLane(): boolean;
  /** Returns the terms for claiming the lane's next run when this one ends; undefined: it isn't claimed. */
  claims(): CommitAnswerInput['claims'];
  /** Returns why the run was asked to stop, if it was. */
  stopReason(): StopReason | undefined;
  /** Says whether the run waits for room in a budget instead of ending. */
  mayWait(refusal: BudgetRefusal): Promise<boolean>;
  /** Called when a boundary finds the cancel flag set. */
  onCancel(reason: string): void;
  onSteered(): void;
};

/** The delivery of this process: an answer is claimed for it in the commit that stores it. */
export type Outbox = {
  claimAlong<T>(route: ReplyRoute, commit: (sender: DeliveryPolicy | undefined) => Promise<T>): Promise<T>;
  continueFrom(claimed: ClaimedDelivery): Promise<void>;
};

const imageIntervalMs = 250;

type EventOf<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>;

/** How the lane was left. `nextRun`: claimed for this holder in the same step that ended the run. */
export type LaneLeft = LaneExit & { readonly nextRun?: ClaimedRun };

export class RunRecorder {
  /** How the lane was left; undefined while the run continues and if it was handed over or lost. */
  left: LaneLeft | undefined;
  /** True if the run took messages that it has no time left to read: another attempt continues with them. */
  hasUnread = false;
  readonly busy: BusyNotice;
  /** Present if its answers are sent in blocks. */
  readonly blocks: AnswerBlocks | undefined;
  /** The budget that the run waits for; the run hasn't ended. */
  outOfBudget: BudgetRefusal | undefined;
  readonly #run: ClaimedRun;
  readonly #deps: RecorderDeps;
  readonly #held: RunFence;
  readonly #tools: ToolTurns;
  #turn = 0;
  #savedAt: number | undefined;
  /** The answer being written, once an image of it may be stored. */
  #imageId: string | undefined;
  /** The answer that isn't on record yet. */
  #current: AgentMessage | undefined;
  #boundary: Boundary | undefined;
  #failure: ModelFailure | undefined;
  #isOver = false;

  constructor(run: ClaimedRun, deps: RecorderDeps) {
    this.#run = run;
    this.#deps = deps;
    this.#held = { laneKey: run.laneKey, epoch: run.epoch, runId: run.runId };
    this.#tools = new ToolTurns(this.#held, deps);
    this.busy = createBusyNotice(deps, run);
    this.blocks = deps.openBlocks?.({
      leadOf: (parts) => leadsOf(deps.display, { parts, lines: this.#tools.takeLines() }),
      // A text may repeat what a tool has sent, which only the final decision knows.
      mayStream: () => this.#tools.actions.toolSends.length === 0,
    });
  }

  /** Adds what tools did under an earlier holder of this run since its last answer. */
  recall(results: readonly PriorToolResult[]): void {
    this.#tools.recall(results);
  }

  /** Returns messages that people sent meanwhile; they are already in the transcript. */
  async steering(delivery?: 'joined'): Promise<readonly AgentMessage[]> {
    if (this.#isOver) return [];
    if (!this.#boundary) await this.#poll(delivery);
    const steers = this.#boundary?.steers ?? [];
    this.#boundary = undefined;
    return steers;
  }

  async #poll(delivery?: 'joined'): Promise<void> {
    const { store } = this.#deps;
    if (!(await store.read(needsBoundary, this.#held))) return;
    const at = { ...this.#steeringAt(), ...(delivery && { delivery }) };
    this.#reach(await store.write(takeSteers, { ...at, givenUp: this.#imageId }));
  }

  /** Records the event; resolves with whether what it reports is on record. */
  async handle(event: AgentEvent): Promise<boolean> {
    switch (event.type) {
      case 'turn_start':
        this.#turn = event.turn;
        this.#savedAt = undefined;
        if (event.resumes) this.#tools.open(event.resumes, event.results);
        return false;
      case 'message_start':
        if (event.message.role === 'assistant') this.#deps.probe.reach('model-called');
        return false;
      case 'message_update':
        await this.#stream(event.message, event.event);
        return false;
      case 'message_end':
        return this.#messageEnd(event.message);
      case 'tool_execution_prepared':
        return this.#tools.start(event.call);
      case 'tool_execution_end':
        return this.#tools.end(event);
      case 'turn_end':
        return event.toolResults.length > 0 ? this.#toolTurnEnd(event) : this.#answerEnd(event);
      case 'agent_end':
        if (event.reason !== 'parked') await this.#agentEnd(event);
        return this.left !== undefined;
      // A summary is on record before its end is reported.
      case 'compaction_start':
      case 'compaction_end':
        return true;
      case 'agent_start':
      case 'tool_execution_start':
      case 'tool_execution_update':
      case 'tool_execution_parked':
      case 'tool_execution_asked':
        return false;
      default:
        return event satisfies never;
    }
  }

  async #stream(message: AgentMessage, event: ModelEvent): Promise<void> {
    const { blocks } = this;
    const { live, probe, clock, store, log } = this.#deps;
    if (event.type === 'thinking_delta') live.think(event.thinking);
    if (event.type === 'tool_use_start') await blocks?.textEnded(this.#imageOf(message));
    if (event.type === 'content_delta') {
      live.push(event.text);
      await blocks?.push(this.#imageOf(message), event.text);
      probe.reach('streaming');
    }
    if (event.type === 'content_recall') this.#anew();
    if (event.type === 'error') this.#failure = event.failure;
    if (event.type === 'warning' && event.kind === 'anew') {
      log.info({ runId: this.#run.runId, detail: event.detail }, 'model.asked-again');
      this.#anew();
    }
    if (event.type === 'warning' && event.kind === 'retrying') await this.busy.onWait(event.waitMs);
    // Written too late, the recalled text might be taken up by another process.
    if (event.type === 'content_recall') this.#savedAt = 0;
    const now = clock.now();
    // Counted from the first token, however late it comes: a short answer is written once, by its own commit.
    this.#savedAt ??= now;
    if (now - this.#savedAt < imageIntervalMs) return;
    this.#savedAt = now;
    this.#imageId = message.id;
    store.writeAlong(saveImage, { ...this.#held, message: this.#imageOf(message) });
  }

  /** The answer so far is written again. */
  #anew(): void {
    this.#deps.live.anew();
    this.blocks?.anew();
  }

  async #messageEnd(message: AgentMessage): Promise<boolean> {
    if (message.role !== 'assistant') return false;
    this.#imageId = undefined;
    const calls = toolCallsOf(message.parts);
    this.#current = calls.length === 0 ? message : undefined;
    if (calls.length === 0 || this.#deps.isHandingOver()) return false;
    const { blocks } = this;
    const { store, calls: tries, probe } = this.#deps;
    const modelCalls = tries.ended();
    await blocks?.textEnded(this.#imageOf(message));
    if (!blocks) this.#tools.noteSaid(readableText(textOf(message.parts), anySource));
    await store.write(commitToolTurn, {
      ...this.#held,
      message: this.#imageOf(message),
      calls: calls.map(({ id, name, input }) => ({ callId: id, name, input })),
      modelCalls,
    });
    tries.stored(modelCalls);
    blocks?.next();
    this.#tools.open(message);
    probe.reach('turn-committed');
    return true;
  }

  async #toolTurnEnd({ message, toolResults }: EventOf<'turn_end'>): Promise<boolean> {
    const closed = this.#tools.close(toolResults);
    if (closed === undefined || this.#deps.isHandingOver()) return false;
    const finish = finishReasonOf(message.parts);
    // A turn that broke off ends the run, so waiting messages are left to the next one.
    const isBroken = finish === 'canceled' || finish === 'timeout' || finish === 'error';
    const at = { ...this.#steeringAt(), ...(isBroken && { delivery: 'none' as const }) };
    const nextCall = at.delivery === 'none' ? undefined : this.#deps.calls.next();
    const ended = { ...at, ...closed, message: this.#imageOf(message), nextCall };
    this.#reach(await this.#deps.store.write(endToolTurn, ended));
    this.#deps.calls.opened(nextCall);
    return true;
  }

  async #answerEnd({ message }: EventOf<'turn_end'>): Promise<boolean> {
    const finish = finishReasonOf(message.parts);
    // A broken turn ends the run; `agent_end` records it with its reason.
    if (finish !== 'end_turn' && finish !== 'max_tokens') return false;
    const reason = this.#deps.stopReason();
    // A finished answer takes precedence over a hand-over; an answer that a person stopped isn't sent.
    return (reason === undefined || reason === 'handover') && this.#answer(message);
  }

  async #answer(message: AgentMessage): Promise<boolean> {
    const { live, store, probe, start, mayKeepLane, claims, outbox, calls } = this.#deps;
    const { shaper, replyToMode, display, prepare } = this.#deps;
    const { target } = this.#run;
    const preview = await live.finishPreview();
    const blocks = await this.blocks?.finish();
    const silence = await silenceContextOf(store, this.#run, message);
    const hasSeen = (messageId: string) => store.read(readIsSeen, { run: this.#run, messageId });
    const shown = { hasPreview: preview !== undefined, blocks };
    const shaping = { ...this.#scene(), shaper, silence, hasSeen, display, ...shown, prepare };
    const plan = await planAnswer(message, shaping, this.#tools.actions);
    const modelCalls = calls.ended();
    const commit = (sender?: DeliveryPolicy) =>
      store.write(commitAnswer, {
        ...this.#steeringAt(),
        message: this.#imageOf(message),
        modelCalls,
        nextCall: calls.next(),
        parts: answerParts(plan, { target, preview, replyToMode }),
        preview: preview?.key,
        ...(blocks && { blocks: blocks.keys }),
        ...outcomeOf(plan),
        mayKeepLane: mayKeepLane(),
        claims: claims(),
        sender,
      });
    const answered = await (this.#route ? outbox.claimAlong(this.#route, commit) : commit());
    // Stopped before its answer was on record: `agent_end` follows and ends the run as stopped.
    if (answered.cancelReason !== undefined) {
      this.#reach(answered);
      return false;
    }
    calls.stored(modelCalls);
    if (answered.steers.length > 0) calls.opened(calls.next());
    probe.reach('turn-committed');
    start(answered.effects);
    live.next();
    this.blocks?.next();
    this.#tools.resetActions();
    this.#current = undefined;
    this.#reach(answered);
    if (answered.next !== undefined) this.#end(answered.next, answered.nextRun);
    if (answered.claimed) await outbox.continueFrom(answered.claimed);
    return true;
  }

  /** Says whether the person gets something without an answer: a tool's message, or files. */
  get hasSpoken(): boolean {
    const { toolSends, files } = this.#tools.actions;
    return files.length > 0 || confirmedSends(toolSends, this.#route).length > 0;
  }

  /** Says whether a person may have seen part of the answer being written. */
  get isShown(): boolean {
    return this.#deps.live.isShown() || this.blocks?.isShown() === true;
  }

  /** Notifies the person that the model has been silent for long. Never throws: the run continues either way. */
  tellQuiet(): void {
    const { log } = this.#deps;
    this.busy.onQuiet().catch((error: unknown) => log.warn({ error }, 'quiet-model.not-told'));
  }

  /** Marks messages that a request was rejected for: no later request of any run contains them again. */
  async keepMarks(marks: readonly Mark[]): Promise<void> {
    const { runId, laneKey } = this.#run;
    this.#deps.log.warn({ runId, laneKey, marks }, 'history.repaired');
    await this.#deps.store.write(markUnsendable, { ...this.#held, marks });
  }

  async #agentEnd(event: EventOf<'agent_end'>): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    const { live, store, log, start, mayKeepLane, stopReason, calls } = this.#deps;
    const reason = stopReason();
    // The loop ends like this if its time ran out while its last answer was being stored.
    this.hasUnread = event.reason === 'natural' && (this.#boundary?.steers.length ?? 0) > 0;
    if (reason === 'handover' || reason === 'lost' || this.hasUnread) return;
    const refused = reason === undefined && event.reason !== 'natural' ? calls.refused() : undefined;
    if (refused && (await this.#deps.mayWait(refused))) {
      this.outOfBudget = refused;
      return;
    }
    const cut = { runId: this.#run.runId, end: event.reason, stop: reason, detail: event.detail };
    log[reason === undefined ? 'warn' : 'info'](cut, 'run.aborted');
    const preview = await live.finishPreview();
    const sent = await this.blocks?.finish();
    // The run also ends if a budget has no room for a summary.
    const failure = refused ? budgetFailure(refused) : this.#failure;
    const why = {
      stop: reason,
      failure,
      preview,
      shown: live.shownAnswer(),
      isBegun: sent !== undefined && sent.keys.length > 0,
    };
    const ending = planEnd(event, this.#scene(), why);
    const modelCalls = calls.endAll();
    this.#noteFullContext(failure);
    const ended = await store.write(endRun, {
      ...this.#held,
      endReason: reason ?? event.reason,
      detail: event.detail,
      ...ending,
      modelCalls,
      message: this.#current && this.#imageOf(this.#current),
      preview: preview?.key,
      mayKeepLane: mayKeepLane(),
    });
    calls.stored(modelCalls);
    start(ended.effects);
    this.#end(ended.next);
  }

  /** Tells the owner that instructions and tools alone are too long for the model. */
  #noteFullContext({ fixedTokens, window: threshold }: Partial<ModelFailure> = {}): void {
    if (fixedTokens === undefined || threshold === undefined) return;
    const { agentId, model } = this.#run;
    this.#deps.store.writeAlong(raiseAlert, contextFull(agentId, { model, fixedTokens, threshold }));
  }

  #end(next: LaneExit, nextRun?: ClaimedRun): void {
    this.left = nextRun ? { ...next, nextRun } : next;
    this.#isOver = true;
    this.#deps.probe.reach('finished');
  }

  #reach(found: Boundary): void {
    const { probe, onCancel, onSteered } = this.#deps;
    if (found.cancelReason !== undefined) onCancel(found.cancelReason);
    if (found.steers.length > 0) {
      probe.reach('steered');
      onSteered();
    }
    this.#boundary = found;
  }

  /** Undefined if nothing is sent anywhere because the run is only recorded. */
  get #route(): ReplyRoute | undefined {
    return routeOf(this.#run.target);
  }

  #scene(): AnswerScene {
    const { capabilities, replyToMode, texts } = this.#deps;
    return { run: this.#run, capabilities, replyToMode, texts };
  }

  #steeringAt(): RunFence & SteerContext {
    const delivery = this.#turn >= this.#deps.turnLimit ? 'none' : this.#deps.steerDelivery;
    const { marks } = this.#deps;
    return { ...this.#held, framing: this.#deps.framing(), delivery, marks };
  }

  #imageOf({ id, parts, model }: AgentMessage): AssistantImage {
    return { id, sessionId: this.#run.sessionId, parts, model };
  }
}

function budgetFailure({ scope }: BudgetRefusal): ModelFailure {
  return { kind: 'budget', budget: scope, detail: `the ${scope} budget has no room for the call` };
}

/** Reads what the answer's turn took. Reads only if the text contains a word whose meaning depends on it. */
async function silenceContextOf(
  store: Store,
  { runId }: { readonly runId: string },
  answer: AgentMessage,
): Promise<SilenceContext> {
  if (!dependsOnContext(textOf(answer.parts))) return ['chat'];
  return silenceContextFrom(await store.read(readTakenOrigins, { runId }));
}

/** Returns the union of what these items are, since an answer to several may use the words of each. */
function silenceContextFrom(taken: readonly TakenOrigin[]): SilenceContext {
  return [...new Set(taken.flatMap(sourcesOfItem))];
}

function sourcesOfItem({ source, sourceKey }: TakenOrigin): SilenceContext {
  switch (source) {
    case 'platform':
    case 'api':
    case 'job':
      return ['chat'];
    case 'schedule':
      return ['heartbeat'];
    case 'session':
      return ['agent-reply'];
    // A person has asked for what a task has become.
    case 'task':
      return ['chat', 'announce'];
    case 'child':
      return [isAnnouncement(sourceKey) ? 'announce' : 'chat'];
    default:
      return source satisfies never;
  }
}
