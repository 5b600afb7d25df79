/** Replaces the older part of a session's history by a summary that a model writes. */
import type { Clock } from '#contracts/clock.ts';
import { hasCode, ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { AgentMessage, MessagePart } from '#contracts/message.ts';
import type { LlmProvider } from '#contracts/model.ts';
import type { Probe } from '#contracts/probe.ts';
import { cleanText, isBlank } from '../agent/clean-text.ts';
import { type ContextLimits, planCompaction } from '../agent/compaction-cut.ts';
import {
  slicesOf,
  summaryPart,
  summaryPrompt,
  summaryRequest,
  summaryTextOf,
} from '../agent/compaction-text.ts';
import { estimateTokens, messageTokens, unitsPerToken } from '../agent/context-size.ts';
import { lostIdentifiers } from '../agent/identifiers.ts';
import type { Store } from '../store/base/command.ts';
import { newRowId } from '../store/base/row-id.ts';
import type { ChildRun } from '../store/children/read-child-run.ts';
import type { ModelCall } from '../store/lanes/assistant-row.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { commitSummary, type SummaryInput, type SummaryStored } from '../store/lanes/commit-summary.ts';
import { type RunContext, readRunContext } from './run-history.ts';

export type CompactorDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  /** Writes the summary. */
  readonly model: LlmProvider;
  readonly limits: ContextLimits;
};

export type CompactionOrder = {
  readonly run: ClaimedRun;
  readonly child: ChildRun | undefined;
  /** A person's wish for the summary. */
  readonly hint?: string | undefined;
  /** End of a run that does nothing else, with the sizes to name. */
  end?(sizes: Sizes): SummaryInput['end'];
};

export type Sizes = { readonly oldTokens: number; readonly newTokens: number };

/** `too-short`: a summary would not free enough, so no model was asked. */
export type Compacted =
  | ({ readonly kind: 'compacted'; readonly stored: SummaryStored } & Sizes)
  | { readonly kind: 'too-short' };

/**
 * Cuts, summarises and commits. Throws a `model_…` fault, what the store throws, and what the signal gives;
 * nothing has changed then.
 */
export async function compactSession(
  deps: CompactorDeps,
  order: CompactionOrder,
  signal: AbortSignal,
): Promise<Compacted> {
  const { store, probe, log } = deps;
  const { laneKey, epoch, runId, sessionId } = order.run;
  const context = await readRunContext(store, order.run, order.child);
  const plan = planCompaction(context.messages, context.summary, deps.limits);
  if (plan === undefined) return { kind: 'too-short' };
  // Places of what it was forked from are those of another session: that is summarised as a whole.
  const index = Math.max(plan.index, context.forked);
  const kept = context.messages.slice(index);
  const written = await writeSummary(deps, { ...plan, index, context, hint: order.hint }, signal);
  const newTokens = written.tokens + estimateTokens(kept);
  const sizes = { oldTokens: plan.oldTokens, newTokens };
  const stored = await store.write(commitSummary, {
    ...{ laneKey, epoch, runId, sessionId, id: newRowId() },
    ...{ parts: written.parts, model: written.model, modelCalls: written.calls },
    keptFrom: kept[0]?.position ?? (context.messages.at(-1)?.position ?? 0) + 1,
    contextTokens: newTokens,
    ...(order.end && { end: order.end(sizes) }),
  });
  probe.reach('summary-committed');
  log.info({ runId, laneKey, ...sizes, kind: stored.kind }, 'context.compacted');
  return { kind: 'compacted', stored, ...sizes };
}

type Writing = {
  readonly index: number;
  readonly summaryTokens: number;
  readonly context: RunContext;
  readonly hint: string | undefined;
};

type Written = {
  readonly parts: readonly MessagePart[];
  readonly tokens: number;
  readonly model: string;
  readonly calls: readonly ModelCall[];
};

/** Two thirds of the room are the model's; the rest is for the identifiers that it has left out. */
async function writeSummary(
  deps: CompactorDeps,
  { index, summaryTokens, context, hint }: Writing,
  signal: AbortSignal,
): Promise<Written> {
  const units = summaryTokens * unitsPerToken;
  const old = context.messages.slice(0, index);
  const earlier = context.summary && summaryTextOf(context.summary);
  const fold = { messages: old, earlier, hint, units: Math.floor((units * 2) / 3) };
  const { text, model, calls } = await foldSlices(deps, fold, signal);
  const lost = lostIdentifiers(old, { earlier: earlier ?? '', summary: text, units: Math.floor(units / 4) });
  const parts = [summaryPart(text, lost)];
  return { parts, tokens: messageTokens({ parts }), model, calls };
}

type Fold = {
  readonly messages: readonly AgentMessage[];
  readonly earlier: string | undefined;
  readonly hint: string | undefined;
  /** Longest text of the summary, UTF-16 units. */
  readonly units: number;
};

/** For the instructions around a slice, tokens. */
const promptRoom = 1_000;
/** A slice shorter than this is not tried again in shorter ones, tokens. */
const shortestSlice = 2_000;

/** Slices the model can read at once; shorter ones when it counts more tokens than we do. */
async function foldSlices(deps: CompactorDeps, fold: Fold, signal: AbortSignal): Promise<Folded> {
  const { contextWindow } = deps.model.model();
  const answerTokens = Math.ceil(fold.units / unitsPerToken);
  const calls: ModelCall[] = [];
  for (let room = contextWindow - promptRoom - 2 * answerTokens; ; room = Math.floor(room / 2)) {
    try {
      return await foldOnce(deps, { ...fold, calls, slices: slicesOf(fold.messages, room) }, signal);
    } catch (error) {
      if (!hasCode(error, 'model_overflow') || room < shortestSlice) throw error;
    }
  }
}

type Folded = { readonly text: string; readonly model: string; readonly calls: readonly ModelCall[] };

async function foldOnce(
  { model, clock }: CompactorDeps,
  { slices, earlier, hint, units, calls }: Fold & { readonly slices: readonly string[]; calls: ModelCall[] },
  signal: AbortSignal,
): Promise<Folded> {
  let text = earlier;
  let answeredBy = '';
  for (const slice of slices) {
    const startedAt = clock.now();
    const content = summaryRequest({ earlier: text, slice, hint, longestWords: Math.ceil(units / 8) });
    const request = {
      system: [{ text: summaryPrompt, isStable: true }],
      messages: [{ role: 'user' as const, content: [{ type: 'text' as const, text: cleanText(content) }] }],
      tools: [],
      maxTokens: Math.max(leastAnswer, Math.ceil(units / unitsPerToken)),
      reasoning: 'off' as const,
    };
    const answer = await model.send(request, signal);
    signal.throwIfAborted();
    const { usage, cost } = answer;
    calls.push({ id: newRowId(), model: answer.model, usage, cost, latencyMs: clock.now() - startedAt });
    if (isBlank(answer.text)) throw new ParleyError('model_failed', 'the summary was empty');
    text = cleanText(answer.text.trim().slice(0, units));
    answeredBy = answer.model;
  }
  if (text === undefined) throw new ParleyError('internal', 'there was nothing to summarise');
  return { text, model: answeredBy, calls };
}

/** Some models think first, and the limit counts that too, tokens. */
const leastAnswer = 1_000;
