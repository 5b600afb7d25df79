import type { TranscriptMessage } from '#contracts/message.ts';
import type { LlmProvider, ModelEvent, ModelRequest, SystemBlock } from '#contracts/model.ts';
import type { Tool } from '#contracts/tool.ts';
import { isCounted } from '../agent/call-pairs.ts';
import { unitsPerToken } from '../agent/fit-context.ts';
import { specsLength } from '../agent/prepare-call.ts';
import type { Store } from '../store/base/command.ts';
import { type ChildRun, readChildRun } from '../store/children/child.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { type PromptSizes, savePromptSizes } from '../store/lanes/commit-summary.ts';
import { readContext, readForkedHistory } from '../store/reads/read-transcript.ts';

/** Returns a sub-agent's role, fork and deadline; undefined for every other run, without a read. */
export async function childRunOf(store: Store, run: ClaimedRun): Promise<ChildRun | undefined> {
  if (!run.class.startsWith('sub-')) return undefined;
  return store.read(readChildRun, { sessionId: run.sessionId });
}

/** The stored context of a run's session, without messages cut off by a crash. */
export type RunContext = {
  /** The summary that replaces everything before the messages. */
  readonly summary: TranscriptMessage | undefined;
  readonly messages: readonly TranscriptMessage[];
  /** How many of the first messages belong to the parent session that this one was forked from. */
  readonly forked: number;
  /** Tokens of the session's last model call, including its answer. */
  readonly tokens: number | undefined;
  /** Sizes of instructions and tools, as stored by the session's last run. */
  readonly sizes: PromptSizes;
};

/**
 * Reads the context. A forked sub-agent's context begins with its parent's, up to the spawn, until it is summarized.
 */
export async function readRunContext(
  store: Store,
  { sessionId }: Pick<ClaimedRun, 'sessionId'>,
  child: ChildRun | undefined,
): Promise<RunContext> {
  const [origin, { summary, messages, tokens, sizes }] = await Promise.all([
    child?.fork ? store.read(readForkedHistory, child.fork) : [],
    store.read(readContext, { sessionId }),
  ]);
  const forked = summary === undefined ? origin.filter(isCounted) : [];
  // An answer cut off by a crash isn't part of the context; the run writes it again.
  const own = messages.filter(isCounted);
  return { summary, messages: [...forked, ...own], forked: forked.length, tokens, sizes };
}

/** Returns the context as the run's model sees it. */
export function shownMessages({ summary, messages }: RunContext): readonly TranscriptMessage[] {
  return summary === undefined ? messages : [summary, ...messages];
}

/** Returns how long the run may still work, ms. Time spent parked counts only towards a sub-agent's deadline. */
export function timeLeft(
  limitMs: number,
  { workedMs, now }: Pick<ClaimedRun, 'workedMs' | 'now'>,
  child: Pick<ChildRun, 'deadlineAt'> | undefined,
): number {
  const untilDeadline = child === undefined ? limitMs : child.deadlineAt - now;
  // An exhausted limit ends the run immediately.
  return Math.max(1, Math.min(limitMs - workedMs, untilDeadline));
}

type Prompt = {
  readonly system: readonly SystemBlock[];
  readonly tools: readonly Tool[];
  /** The stored sizes. */
  readonly sizes: PromptSizes;
};

/**
 * Asks the model for a run's turns, and records the sizes of instructions and tools as sent, if they have changed. That
 * a model accepts no tools may become known only from its answer.
 */
export function recordingSizes(
  model: LlmProvider,
  { store, run, ...prompt }: Prompt & { readonly store: Store; readonly run: ClaimedRun },
): LlmProvider['stream'] {
  const { takesTools = true } = model.model();
  let { sizes } = prompt;
  const record = (withoutTools: boolean) => {
    const sent = withoutTools
      ? sizesOf(
          prompt.system.filter(({ isAboutTools }) => !isAboutTools),
          [],
        )
      : sizesOf(prompt.system, prompt.tools);
    if (sent.instructionTokens === sizes.instructionTokens && sent.toolTokens === sizes.toolTokens) return;
    sizes = sent;
    const { laneKey, epoch, runId, sessionId } = run;
    store.writeAlong(savePromptSizes, { laneKey, epoch, runId, sessionId, ...sent });
  };
  return async function* (request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const isTurn = run.kind === 'turn';
    const asked = isTurn ? { ...request, conversation: run.sessionId } : request;
    for await (const event of model.stream(asked, signal)) {
      if (isTurn && event.type === 'complete') record(event.withoutTools ?? !takesTools);
      yield event;
    }
  };
}

function sizesOf(system: readonly SystemBlock[], tools: readonly Tool[]): PromptSizes {
  return {
    instructionTokens: tokensOf(system.reduce((length, { text }) => length + text.length, 0)),
    toolTokens: tools.length === 0 ? 0 : tokensOf(specsLength(tools)),
  };
}

function tokensOf(length: number): number {
  return Math.ceil(length / unitsPerToken);
}
