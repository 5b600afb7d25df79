import type { AgentEvent, CallQuestion } from '#contracts/agent-event.ts';
import { type CallRate, isUncounted } from '#contracts/call-ledger.ts';
import type { Capabilities } from '#contracts/capabilities.ts';
import type { HostedChannel } from '#contracts/channel.ts';
import type { ChildRole } from '#contracts/child.ts';
import type { Clock } from '#contracts/clock.ts';
import { agentId, runId, type SessionKey, sessionId, transcriptId } from '#contracts/ids.ts';
import type { RunKind } from '#contracts/inbox-item.ts';
import type { Log } from '#contracts/log.ts';
import type { MarkSettings } from '#contracts/mark.ts';
import type { ModelInfo, ModelPurpose, ReasoningLevel, SystemBlock } from '#contracts/model.ts';
import { lowestAuthority } from '#contracts/outcome.ts';
import type { Probe } from '#contracts/probe.ts';
import { type ReplyRoute, routeOf } from '#contracts/route.ts';
import type { SkillSnapshot } from '#contracts/skill.ts';
import type { ReceivedFile, Tool, ToolContext, ToolOutput, ToolRun } from '#contracts/tool.ts';
import { createConverter, type LoadDocument, type LoadImage } from '../agent/convert.ts';
import { fitContext, pruneResults } from '../agent/fit-context.ts';
import { type AgentEvents, agentLoopContinue, agentLoopResume } from '../agent/loop.ts';
import type { AgentLoopConfig, Permit, PermitRequest } from '../agent/loop-config.ts';
import type { CallEntry } from '../agent/resumption.ts';
import { hookRunOf } from '../hooks/hook-run.ts';
import type { Hooks } from '../hooks/hooks.ts';
import { prepareMessage } from '../hooks/prepare-message.ts';
import type { Models } from '../models/models.ts';
import {
  attributes,
  newSpanId,
  operations,
  runSpanId,
  type Span,
  type Tracer,
  traceIdOf,
} from '../models/observers/spans.ts';
import { isEmptyAnswer } from '../replies/reply-pipeline.ts';
import type { TextShaper } from '../replies/text-shaper.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { newRowId } from '../store/base/keys.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { handOver } from '../store/lanes/leases.ts';
import type { ParkOutcome } from '../store/lanes/park-run.ts';
import { type RunCall, readToolResults, recoverRun } from '../store/lanes/recover-run.ts';
import { keepSkills, readRunSkills } from '../store/lanes/run-skills.ts';
import type { TextFraming } from '../store/lanes/take-rows.ts';
import type { ChatTexts } from '../texts/chat-texts.ts';
import type { ActiveRuns } from './active-runs.ts';
import type { Display, RunSettings } from './agents.ts';
import { type AnswerBlocks, blocksFor } from './answer-blocks.ts';
import { createRunCalls, type RunBudgets, type RunCalls } from './call-ledger.ts';
import { executeCompact, publishTitle, titleSettings, titleSystem } from './execute-compact.ts';
import { createNoopView, type LiveView, openLiveView } from './live-view.ts';
import { type ApprovalSettings, mayWaitForRoom, parkIfWaiting, type WaitingCall } from './park.ts';
import type { PreviewJournal } from './preview-surface.ts';
import { type LaneLeft, type Outbox, type RecorderDeps, RunRecorder } from './recorder.ts';
import { compactionOf, compactorOf } from './run-compaction.ts';
import { acknowledgeRun, displayFor, minCapabilities } from './run-display.ts';
import { RunFeed, type RunFeedDeps } from './run-feed.ts';
import { childRunOf, readRunContext, recordingSizes, shownMessages, timeLeft } from './run-history.ts';
import { persistHookOf, startRun, toolHooksOf } from './run-hooks.ts';
import { createStop, createStoreWatch, type StopController, type StoreWatch } from './stop-controller.ts';

/** Dependencies of executing a run. */
export type RunDeps = RunFeedDeps & {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  readonly texts: ChatTexts;
  readonly models: Models;
  /** Records spans of runs and tool calls; absent unless tracing is on. */
  readonly tracer?: Tracer | undefined;
  /** Rates of every model, by name, so that rows are opened ahead where no budget counts the calls. */
  readonly rates?: Readonly<Record<string, CallRate>> | undefined;
  readonly budgets?: RunBudgets;
  readonly active: ActiveRuns;
  readonly outbox: Outbox;
  readonly journal: PreviewJournal;
  readonly hooks?: Hooks;
  readonly settings: RunSettings;
  readonly shaper: TextShaper;
  readonly loadImage: LoadImage;
  /** Reads the files of a session's messages; absent: tools can't. */
  readonly receivedFiles?: (
    session: Pick<ClaimedRun, 'laneKey' | 'sessionId'>,
  ) => Promise<readonly ReceivedFile[]>;
  /** Absent: of a PDF, only the text is shown. */
  readonly loadDocument?: LoadDocument;
  readonly approvals: ApprovalSettings;
  /** Marks for messages that join a run; absent: none. */
  readonly marks?: MarkSettings | undefined;
  /** Decides whether a call may run, by the configured rules and by what people have allowed for longer. */
  permit(run: ToolRun, request: PermitRequest): Promise<Permit>;
  framing(): TextFraming;
  skillsFor(agent: string): Promise<SkillSnapshot>;
  agent(id: string): { readonly workspace: string; readonly reasoning: ReasoningLevel };
  systemFor(
    run: ToolRun,
    scene: {
      readonly chatKind: 'dm' | 'group';
      readonly tools: readonly Tool[];
      /** Replaces the agent's own instructions. */
      readonly prompt?: string | undefined;
    },
  ): Promise<readonly SystemBlock[]>;
  toolsFor(run: ToolRun): readonly Tool[];
  /** Copies the files that a tool's result attaches, and tells the model what became of them. */
  attachFiles(output: ToolOutput, ctx: ToolContext): Promise<ToolOutput>;
  /** Makes large images of tools smaller; absent: those that no provider accepts are left out. */
  fitImages?(output: ToolOutput, signal: AbortSignal): Promise<ToolOutput>;
  channelFor(route: ReplyRoute): HostedChannel | undefined;
  capabilitiesFor(route: ReplyRoute): Capabilities | undefined;
  start(effects: Effects): void;
  /** Lets runs continue whose budgets have room, after a call has returned what it reserved. */
  freedRoom(): void;
};

/** How the lane was left, or that the run waits for something outside or for its next attempt. */
export type RunExit = LaneLeft | ParkOutcome | { readonly kind: 'handed-over' };

export type RunOptions = Pick<RecorderDeps, 'mayKeepLane' | 'claims'> & { readonly signal: AbortSignal };

/**
 * Executes one claimed run until it ends, is handed over or is lost. Returns how the lane was left, or undefined if the
 * run was lost to another process. Throws the store's faults: only what was committed counts, and the next holder
 * resumes the run.
 */
export async function executeRun(
  deps: RunDeps,
  run: ClaimedRun,
  options: RunOptions,
): Promise<RunExit | undefined> {
  if (run.kind === 'compact')
    return executeCompact(deps, run, { ...options, compactor: compactorOf(deps, run, callsOf(deps, run)) });
  const { store, active, log } = deps;
  const held = { laneKey: run.laneKey, epoch: run.epoch, runId: run.runId };
  const stopping = createStop(deps.settings, options.signal);
  const startedAt = deps.clock.now();
  const attempt = { ...held, stop: stopping.stop };
  active.add(attempt);
  if (run.cancelReason !== undefined) active.cancel(run.runId, run.cancelReason);
  const feed = new RunFeed(deps, run);
  let live = createNoopView();
  let blocks: AnswerBlocks | undefined;
  try {
    feed.begin();
    if (run.beginsSession)
      void deps.hooks?.observe('session_start', { sessionId: run.sessionId, sessionKey: run.laneKey });
    const route = routeOf(run.target);
    const channel = route && deps.channelFor(route);
    const display = await displayFor(deps, run, channel);
    live = await openLiveView({ ...deps, display }, run, channel);
    const calls = callsOf(deps, run);
    const recorder = await createRecorder(deps, run, {
      ...{ options, stopping, calls, live, feed, display },
    });
    blocks = recorder.blocks;
    await acknowledgeRun(deps, run, { display, channel });
    const waits = await runLoop(deps, run, { recorder, stopping, calls, feed });
    const waiting = { ...waits, refusal: recorder.outOfBudget, calls, startedAt, live, feed };
    let left: RunExit | undefined = (await parkIfWaiting(deps, run, waiting)) ?? recorder.left;
    if ((stopping.reason() === 'handover' || recorder.hasUnread) && left === undefined) {
      await recordShown(deps.clock, live);
      await store.write(handOver, { ...held, modelCalls: calls.endAll() });
      left = { kind: 'handed-over' };
      deps.probe.reach('handing-over');
    }
    if (run.kind === 'title' && left !== undefined) await publishTitle(deps, run.laneKey);
    const { runId, laneKey, isResumed } = run;
    // If the lease turns out to be gone after the run has closed its lane, it was given back, not lost.
    const isGivenBack = stopping.reason() === 'lost' && left !== undefined;
    const stop = isGivenBack ? undefined : stopping.reason();
    log.info({ runId, laneKey, isResumed, stop, durationMs: deps.clock.now() - startedAt }, 'run.ended');
    return left;
  } finally {
    stopping.close();
    active.remove(attempt);
    blocks?.close();
    await live.end();
    feed.close();
  }
}

/** How long a network may delay a hand-over, ms. */
const shownMs = 3_000;

/**
 * Records the shown message before another process continues; otherwise half an answer stays next to the complete one.
 */
async function recordShown(clock: Clock, live: LiveView): Promise<void> {
  const isRecorded = new AbortController();
  const recorded = live.finishPreview().finally(() => isRecorded.abort());
  await Promise.race([recorded, clock.wait(shownMs, isRecorded.signal)]);
}

type RecorderParts = {
  readonly options: RunOptions;
  readonly stopping: StopController;
  readonly calls: RunCalls;
  readonly live: LiveView;
  readonly feed: RunFeed;
  readonly display: Display;
};

async function createRecorder(
  deps: RunDeps,
  run: ClaimedRun,
  { options, stopping, calls, live, feed, display }: RecorderParts,
): Promise<RunRecorder> {
  const { store, clock, log, probe, texts, shaper, outbox, framing, start, settings, active } = deps;
  const { runId } = run;
  const route = routeOf(run.target);
  // A run that resumes after a start may be quicker than the connection.
  const capabilities = (route && deps.capabilitiesFor(route)) ?? minCapabilities;
  const openBlocks = await blocksFor(deps, run, { display, capabilities });
  return new RunRecorder(run, {
    openBlocks,
    display,
    marks: deps.marks,
    redact: (text) => deps.redact(text),
    ...{ store, clock, log, probe, texts, shaper, outbox, framing, start },
    capabilities,
    replyToMode: settings.replyToMode,
    suppressAcknowledgements: settings.suppressAcknowledgements,
    live,
    calls,
    turnLimit: settings.limits.turns,
    steerDelivery: settings.steerDelivery,
    mayKeepLane: options.mayKeepLane,
    claims: options.claims,
    stopReason: stopping.reason,
    mayWait: (refusal) => mayWaitForRoom(run, refusal, deps.budgets),
    isHandingOver: stopping.isHandingOver,
    onCancel: (reason) => active.cancel(runId, reason),
    onTool: stopping.toolIs,
    persist: persistHookOf(deps.hooks),
    prepare: (text, route) =>
      prepareMessage(deps.hooks, { source: 'answer', run: hookRunOf(toolRunOf(deps, run)), route, text }),
    onSteered: () => feed.publish({ kind: 'run', runId, state: 'steered' }),
  });
}

const purposes = { turn: 'turn', title: 'title', compact: 'summary' } as const satisfies Record<
  RunKind,
  ModelPurpose
>;

function callsOf(deps: RunDeps, run: ClaimedRun): RunCalls {
  const { store, clock, probe, freedRoom, rates, budgets } = deps;
  const limits = budgets?.limitsFor(run) ?? (async () => []);
  const purpose = purposes[run.kind];
  const rate = isUncounted(budgets?.uncounted ?? 'all', run) ? rates?.[run.model] : undefined;
  return createRunCalls({ store, clock, probe, freedRoom, purpose, rate, limits }, run);
}

/** Calls that wait for something outside, and those that a person has to approve; none unless the run must be parked. */
type RunWaits = { readonly waitsFor: readonly WaitingCall[]; readonly questions: readonly CallQuestion[] };

async function runLoop(
  deps: RunDeps,
  run: ClaimedRun,
  {
    recorder,
    stopping,
    calls,
    feed,
  }: Pick<RecorderParts, 'stopping' | 'calls' | 'feed'> & { recorder: RunRecorder },
): Promise<RunWaits> {
  const { store, clock, settings } = deps;
  const child = await childRunOf(store, run);
  const skills = run.kind === 'title' ? undefined : await skillsOf(deps, run);
  const toolRun = toolRunOf(deps, run, { role: child?.role, skills });
  const tools = toolsOf(deps, toolRun);
  const { signal, isHandingOver } = stopping;
  let entries: readonly CallEntry[] | undefined;
  if (run.isResumed) {
    entries = (await store.write(recoverRun, run)).map(entryOf);
    recorder.recall(await store.read(readToolResults, { runId: run.runId }));
  }
  if (isHandingOver()) return { waitsFor: [], questions: [] };
  const [system, stored] = await Promise.all([
    run.kind === 'title'
      ? titleSystem
      : systemFor(deps, toolRun, { chatKind: run.chatKind, tools, prompt: run.override?.prompt }),
    readRunContext(store, run, child),
  ]);
  deps.probe.reach('taken');
  const model = deps.models.stackFor(run.model, calls);
  const info = model.model();
  const { limits, ...shape } = shapeOf(deps, run, info);
  const watch = createStoreWatch();
  const config: AgentLoopConfig = {
    run: toolRun,
    clock,
    newId: () => transcriptId(newRowId()),
    limits: { ...limits, runTimeoutMs: timeLeft(limitOf(limits, run), run, child) },
    toolExecution: settings.toolExecution,
    steerTail: settings.steerTail,
    ...shape,
    stream: recordingSizes(model, { ...stored, store, run, system, tools }),
    transformContext: async (all, tokens) =>
      fitContext(pruneResults(all), { tokens, window: info.contextWindow }),
    ...(stored.tokens !== undefined && { contextTokens: stored.tokens }),
    ...compactionOf(deps, run, { child, calls, watch, busy: recorder.busy, feed }),
    convertToLlm: createConverter(deps),
    ...toolHooksOf(deps.hooks, toolRun),
    isEmptyAnswer: (text) => !recorder.hasSpoken && isEmptyAnswer(text, ['chat']),
    isShown: () => recorder.isShown,
    onQuiet: () => recorder.tellQuiet(),
    permit: (request) => watch.ask(deps.permit(toolRun, request)),
    keepMarks: (marks) => watch.ask(recorder.keepMarks(marks)),
    getSteeringMessages: () => watch.ask(recorder.steering()),
    onArrival: (listener) => deps.active.onArrival(run.laneKey, listener),
    ...(settings.steerRestart[run.chatKind] === 'never' && {
      getJoiningMessages: () => watch.ask(recorder.steering('joined')),
    }),
    // The last turn's commit has either closed the run or taken the messages that extend it, so there is nothing to
    // ask.
    getFollowUpMessages: async () => [],
  };
  const context = { system, messages: shownMessages(stored), tools: watched(deps, tools, watch) };
  const events =
    entries === undefined
      ? agentLoopContinue(context, config, signal)
      : agentLoopResume(context, entries, config, signal);
  return follow(deps, run, { toolRun, events, recorder, watch, feed });
}

/** A program may only shorten the run that its message begins. */
function limitOf({ runTimeoutMs }: { readonly runTimeoutMs: number }, { override }: ClaimedRun): number {
  return Math.min(runTimeoutMs, override?.timeoutMs ?? runTimeoutMs);
}

async function systemFor(
  deps: RunDeps,
  run: ToolRun,
  scene: Parameters<RunDeps['systemFor']>[1],
): Promise<readonly SystemBlock[]> {
  return startRun(deps.hooks, run, await deps.systemFor(run, scene));
}

/** Records each event before the loop continues. Returns what the run waits for. */
async function follow(
  deps: RunDeps,
  run: ClaimedRun,
  input: {
    readonly toolRun: ToolRun;
    readonly events: AgentEvents;
    readonly recorder: RunRecorder;
    readonly watch: StoreWatch;
    readonly feed: RunFeed;
  },
): Promise<RunWaits> {
  const { events, recorder, watch, feed } = input;
  const trace = traceRun(deps.tracer, run, deps.clock);
  const waitsFor: WaitingCall[] = [];
  const questions: CallQuestion[] = [];
  for await (const event of events) {
    // A call that failed because of the store has no result: the run's next attempt makes it again, under the same key.
    if (event.type === 'agent_end' || (event.type === 'tool_execution_end' && event.isError)) watch.check();
    const isStored = await recorder.handle(event);
    trace(event);
    feed.tell(event, isStored);
    if (event.type === 'agent_end' && event.reason !== 'parked')
      void deps.hooks?.observe('agent_end', { run: hookRunOf(input.toolRun), reason: event.reason });
    if (event.type === 'tool_execution_parked') waitsFor.push(event);
    if (event.type === 'tool_execution_asked') questions.push(event.question);
  }
  return { waitsFor, questions };
}

function watched(
  { attachFiles, fitImages = async (output) => output }: Pick<RunDeps, 'attachFiles' | 'fitImages'>,
  tools: readonly Tool[],
  watch: StoreWatch,
): readonly Tool[] {
  return tools.map((tool) => {
    const { name, description, inputSchema, parallelSafe, replay, authority, approval } = tool;
    return {
      ...{ name, description, inputSchema, parallelSafe, replay, authority },
      ...(approval && { approval }),
      ...(tool.describe && { describe: (input: unknown) => tool.describe?.(input) ?? '' }),
      ...(tool.prepareArguments && { prepareArguments: (raw: unknown) => tool.prepareArguments?.(raw) }),
      execute: async (input, ctx) => {
        const output = await watch.ask(tool.execute(input, ctx));
        // A plugin's tool may return anything, which the loop reports.
        const has = (name: string) => output !== null && typeof output === 'object' && name in output;
        if ('parked' in output || !(has('files') || has('images'))) return output;
        const fitted = has('images') ? await fitImages(output, ctx.signal) : output;
        return has('files') ? attachFiles(fitted, ctx) : fitted;
      },
    };
  });
}

function toolsOf(deps: RunDeps, run: ToolRun): readonly Tool[] {
  const mayCause = ({ authority }: Tool) => lowestAuthority(run.authority, authority) === authority;
  return deps.toolsFor(run).filter(mayCause);
}

function shapeOf(
  { settings, agent }: RunDeps,
  run: ClaimedRun,
  info: ModelInfo,
): Pick<AgentLoopConfig, 'limits' | 'maxTokens' | 'reasoning'> {
  if (run.kind === 'title') return titleSettings(settings.limits, info);
  const reasoning = run.reasoning ?? agent(run.agentId).reasoning;
  return { limits: settings.limits, maxTokens: info.answerTokens, reasoning };
}

function entryOf({ question, ...call }: RunCall): CallEntry {
  const state = call.state === 'pending' ? 'fresh' : call.state;
  if (question === undefined) return { ...call, state };
  const { state: verdict, input, digest } = question;
  return { ...call, state: state === 'fresh' ? 'asked' : state, asked: { verdict, input, digest } };
}

/** A resumed run has the skills that it began with, even if the owner has accepted others since. */
async function skillsOf({ store, skillsFor }: RunDeps, run: ClaimedRun): Promise<SkillSnapshot> {
  const { runId, laneKey, epoch, agentId: agent, isResumed } = run;
  const kept = isResumed ? await store.read(readRunSkills, { runId }) : undefined;
  if (kept !== undefined) return kept;
  const snapshot = await skillsFor(agent);
  if (snapshot.skills.length > 0) await store.write(keepSkills, { runId, laneKey, epoch, snapshot });
  return snapshot;
}

function toolRunOf(
  deps: Pick<RunDeps, 'agent' | 'receivedFiles'>,
  run: ClaimedRun,
  {
    role,
    skills,
  }: { readonly role?: ChildRole | undefined; readonly skills?: SkillSnapshot | undefined } = {},
): ToolRun {
  const route = routeOf(run.target);
  const { receivedFiles } = deps;
  return {
    runId: runId(run.runId),
    sessionId: sessionId(run.sessionId),
    // Only the session-key codec creates such keys; the store keeps them as plain text.
    sessionKey: run.laneKey as SessionKey,
    agentId: agentId(run.agentId),
    ...(route && { route }),
    ...(role && { role }),
    ...(run.kind === 'title' && { type: 'title' as const }),
    ...(skills && skills.skills.length > 0 && { skills }),
    authority: run.authority,
    workspace: deps.agent(run.agentId).workspace,
    ...(receivedFiles && { receivedFiles: () => receivedFiles(run) }),
    epoch: run.epoch,
  };
}

type TracedRun = Pick<ClaimedRun, 'runId' | 'sessionId' | 'agentId' | 'epoch'>;

/** Records a span for this attempt at a run and one for each of its tool calls, from the events passed to it. */
export function traceRun(
  tracer: Tracer | undefined,
  { runId, sessionId, agentId, epoch }: TracedRun,
  clock: Clock,
): (event: AgentEvent) => void {
  if (tracer === undefined) return () => undefined;
  const traceId = traceIdOf(runId);
  const spanId = runSpanId(runId, epoch);
  const startedAt = clock.now();
  const calls = new Map<string, number>();
  const record = (span: Omit<Span, 'traceId' | 'kind' | 'endedAt'>) =>
    tracer.record({ ...span, traceId, kind: 'internal', endedAt: clock.now() });
  return (event) => {
    if (event.type === 'tool_execution_prepared') calls.set(event.call.id, clock.now());
    if (event.type === 'tool_execution_end')
      record({
        spanId: newSpanId(),
        parentId: spanId,
        name: `${operations.tool} ${event.name}`,
        startedAt: calls.get(event.callId) ?? clock.now(),
        attributes: {
          [attributes.operation]: operations.tool,
          [attributes.tool]: event.name,
          [attributes.toolCall]: event.callId,
        },
        error: event.isError ? 'tool_error' : undefined,
      });
    if (event.type === 'agent_end')
      record({
        spanId,
        name: `${operations.run} ${agentId}`,
        startedAt,
        attributes: {
          [attributes.operation]: operations.run,
          [attributes.agent]: agentId,
          [attributes.conversation]: sessionId,
          [attributes.run]: runId,
          [attributes.endReason]: event.reason,
        },
        error: event.reason === 'natural' || event.reason === 'parked' ? undefined : event.reason,
      });
  };
}
