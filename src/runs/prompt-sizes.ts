import type { LlmProvider, ModelEvent, ModelRequest, SystemBlock } from '#contracts/model.ts';
import type { Tool } from '#contracts/tool.ts';
import { unitsPerToken } from '../agent/context-size.ts';
import { specsLength } from '../agent/tool-specs.ts';
import type { Store } from '../store/base/command.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { type PromptSizes, savePromptSizes } from '../store/lanes/prompt-sizes.ts';

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
