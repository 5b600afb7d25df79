/** Replaces the older part of a session's history with a summary written by a model. */
import { cleanText, isBlank } from '#channel-kit/clean-text.ts';
import { hasCode, ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { AgentMessage, MessagePart } from '#contracts/message.ts';
import type { LlmProvider, ModelRequest, OnWait } from '#contracts/model.ts';
import type { Probe } from '#contracts/probe.ts';
import { type ContextLimits, planCompaction } from '../agent/compaction-cut.ts';
import {
  changeFacts,
  lostIdentifiers,
  type ParsedSummary,
  parseSummary,
  readSummary,
  slicesOf,
  summaryParts,
  summaryPrompt,
  summaryRequest,
} from '../agent/compaction-text.ts';
import { estimateTokens, messageTokens, unitsPerToken } from '../agent/fit-context.ts';
import type { Hooks } from '../hooks/hooks.ts';
import type { Store } from '../store/base/command.ts';
import { newRowId } from '../store/base/keys.ts';
import type { ChildRun } from '../store/children/child.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { commitSummary, type SummaryInput, type SummaryStored } from '../store/lanes/commit-summary.ts';
import type { RunCalls } from './call-ledger.ts';
import { type RunContext, readRunContext } from './run-history.ts';

export type CompactorDeps = {
  readonly store: Store;
  readonly log: Log;
  readonly probe: Probe;
  /** Writes the summary, and records its calls in `calls`. */
  readonly model: LlmProvider;
  readonly calls: RunCalls;
  readonly limits: ContextLimits;
  readonly hooks?: Hooks | undefined;
};

export type CompactionOrder = {
  readonly run: ClaimedRun;
  readonly child: ChildRun | undefined;
  /** A person's request about the summary. */
  readonly hint?: string | undefined;
  /** Called with the size of the context before a model is asked. */
  begin?(oldTokens: number): void;
  readonly onWait?: OnWait;
  /** Called with the share of the history that the model has read, 0 to 1. */
  progress(read: number): void;
  /** Returns the end of a run that does nothing else; its notice may name the sizes. */
  end?(sizes: Sizes): SummaryInput['end'];
};

export type Sizes = { readonly oldTokens: number; readonly newTokens: number };

/** `too-short`: a summary wouldn't free enough, so no model was asked. */
export type CompactionResult =
  | ({ readonly kind: 'compacted'; readonly stored: SummaryStored } & Sizes)
  | { readonly kind: 'too-short' };

/**
 * Cuts, summarizes and commits. Throws `model_…` faults, the store's faults and the signal's reason; nothing has
 * changed in that case.
 */
export async function compactSession(
  deps: CompactorDeps,
  order: CompactionOrder,
  signal: AbortSignal,
): Promise<CompactionResult> {
  const { store, probe, log, calls } = deps;
  const { laneKey, epoch, runId, sessionId } = order.run;
  const context = await readRunContext(store, order.run, order.child);
  const plan = planCompaction(context.messages, context.summary, deps.limits);
  if (plan === undefined) return { kind: 'too-short' };
  const known = { runId, sessionId, agentId: order.run.agentId };
  await deps.hooks?.observe('before_compaction', { run: known, oldTokens: plan.oldTokens });
  order.begin?.(plan.oldTokens);
  order.progress(0);
  // The forked part has positions of another session, so it is always summarized in full.
  const index = Math.max(plan.index, context.forked);
  const kept = context.messages.slice(index);
  const { hint, onWait, progress } = order;
  const writing = { ...plan, index, context, hint, onWait, progress };
  const written = await writeSummary(deps, writing, signal);
  const newTokens = written.tokens + estimateTokens(kept);
  const sizes = { oldTokens: plan.oldTokens, newTokens };
  const modelCalls = calls.ended();
  const stored = await store.write(commitSummary, {
    ...{ laneKey, epoch, runId, sessionId, id: newRowId() },
    ...{ parts: written.parts, model: written.model, modelCalls },
    keptFrom: kept[0]?.position ?? (context.messages.at(-1)?.position ?? 0) + 1,
    contextTokens: newTokens,
    ...(order.end && { end: order.end(sizes) }),
  });
  if (stored.kind !== 'stopped') calls.stored(modelCalls);
  probe.reach('summary-committed');
  log.info({ runId, laneKey, ...sizes, kind: stored.kind }, 'context.compacted');
  void deps.hooks?.observe('after_compaction', { run: known, ...sizes });
  return { kind: 'compacted', stored, ...sizes };
}

type SummaryJob = {
  readonly index: number;
  readonly summaryTokens: number;
  readonly context: RunContext;
  readonly hint: string | undefined;
  readonly onWait: OnWait | undefined;
  progress(read: number): void;
};

type Written = {
  readonly parts: readonly MessagePart[];
  readonly tokens: number;
  readonly model: string;
};

/** Length of the fixed text around a summary, its facts and its identifiers, UTF-16 units. */
const frameUnits = 200;

/** Share of the model's longest answer that the text may take; the changes to the facts follow it. */
const textShare = 0.75;

/** Half of the room is for the text, a sixth for the facts, a third for identifiers that both omitted. */
async function writeSummary(
  deps: CompactorDeps,
  { index, summaryTokens, context, ...telling }: SummaryJob,
  signal: AbortSignal,
): Promise<Written> {
  const units = summaryTokens * unitsPerToken - frameUnits;
  const answerUnits = deps.model.model().answerTokens * unitsPerToken;
  const old = context.messages.slice(0, index);
  const known = context.summary && readSummary(context.summary);
  const fold = {
    messages: old,
    earlier: known?.text,
    known: known?.facts ?? [],
    ...telling,
    units: Math.floor(Math.min(units / 2, answerUnits * textShare)),
    factUnits: Math.floor(units / 6),
  };
  const { text, facts, model } = await foldSlices(deps, fold, signal);
  const lost = await lostIdentifiers(old, {
    earlier: [known?.text ?? '', ...(known?.facts ?? [])].join('\n'),
    summary: [text, ...facts].join('\n'),
    units: Math.floor(units / 3),
  });
  const parts = summaryParts({ text, lost, facts });
  return { parts, tokens: messageTokens({ parts }), model };
}

type Fold = {
  readonly messages: readonly AgentMessage[];
  readonly earlier: string | undefined;
  /** Facts remembered so far. */
  readonly known: readonly string[];
  readonly hint: string | undefined;
  readonly onWait: OnWait | undefined;
  progress(read: number): void;
  /** Longest text of the summary, UTF-16 units. */
  readonly units: number;
  /** Longest list of facts, UTF-16 units. */
  readonly factUnits: number;
};

/** Tokens reserved for the instructions around a slice. */
const promptRoom = 1_000;
/** A slice shorter than this is not split further, tokens. */
const shortestSlice = 2_000;

/**
 * Splits the messages into slices that fit the model, and into shorter ones if it counts more tokens than estimated.
 */
async function foldSlices(deps: CompactorDeps, fold: Fold, signal: AbortSignal): Promise<FoldedText> {
  const { contextWindow } = deps.model.model();
  const answerTokens = Math.ceil((fold.units + fold.factUnits) / unitsPerToken);
  for (let room = contextWindow - promptRoom - 2 * answerTokens; ; room = Math.floor(room / 2)) {
    try {
      return await foldOnce(deps, { ...fold, slices: slicesOf(fold.messages, room) }, signal);
    } catch (error) {
      if (!hasCode(error, 'model_overflow') || room < shortestSlice) throw error;
    }
  }
}

type FoldedText = {
  readonly text: string;
  readonly facts: readonly string[];
  readonly model: string;
};

async function foldOnce(
  deps: CompactorDeps,
  fold: Fold & { readonly slices: readonly string[] },
  signal: AbortSignal,
): Promise<FoldedText> {
  const { slices, earlier, known, hint, units, factUnits, onWait, progress } = fold;
  let [text, facts] = [earlier, known];
  let answeredBy = '';
  for (const [index, slice] of slices.entries()) {
    const longestWords = Math.ceil(units / 8);
    const content = summaryRequest({ earlier: text, facts, factUnits, slice, hint, longestWords });
    const maxTokens = Math.max(minAnswer, Math.ceil((units + factUnits) / unitsPerToken));
    const { summary, changes, model } = await askForSummary(deps, { content, maxTokens, onWait }, signal);
    text = cleanText(summary.slice(0, units));
    facts = changeFacts(facts, changes, factUnits);
    answeredBy = model;
    progress((index + 1) / slices.length);
  }
  if (text === undefined) throw new ParleyError('internal', 'there was nothing to summarise');
  return { text, facts, model: answeredBy };
}

/** Smallest answer limit, tokens: some models think first, and the limit includes that. */
const minAnswer = 1_000;

type Question = {
  readonly content: string;
  readonly maxTokens: number;
  readonly onWait: OnWait | undefined;
};

/** Retries an empty answer once with the model's full limit, since thinking may have used up the first one. */
async function askForSummary(
  { model }: CompactorDeps,
  { content, maxTokens, onWait }: Question,
  signal: AbortSignal,
): Promise<ParsedSummary & { readonly model: string }> {
  for (const most of [maxTokens, model.model().answerTokens]) {
    const request: ModelRequest = {
      system: [{ text: summaryPrompt, isStable: true }],
      messages: [{ role: 'user', content: [{ type: 'text', text: cleanText(content) }] }],
      tools: [],
      maxTokens: most,
      reasoning: 'off',
    };
    const answer = await model.send(request, signal, onWait);
    signal.throwIfAborted();
    const parsed = parseSummary(answer.text);
    if (!isBlank(parsed.summary)) return { ...parsed, model: answer.model };
  }
  throw new ParleyError('model_failed', 'the summary was empty');
}
