import type { SystemBlock } from '#contracts/model.ts';
import type { Tool } from '#contracts/tool.ts';
import { unitsPerToken } from '../agent/context-size.ts';
import { toolSpecs } from '../agent/tool-specs.ts';
import type { Store } from '../store/base/command.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { type PromptSizes, savePromptSizes } from '../store/lanes/prompt-sizes.ts';

type Prompt = {
  readonly system: readonly SystemBlock[];
  readonly tools: readonly Tool[];
  /** As they are stored. */
  readonly sizes: PromptSizes;
};

/** Records the sizes of instructions and tools where they have changed. */
export function recordSizes(store: Store, run: ClaimedRun, { system, tools, sizes }: Prompt): void {
  const text = system.map((block) => block.text).join('');
  const instructionTokens = tokensOf(text);
  const toolTokens = tools.length === 0 ? 0 : tokensOf(JSON.stringify(toolSpecs(tools)));
  if (instructionTokens === sizes.instructionTokens && toolTokens === sizes.toolTokens) return;
  const { laneKey, epoch, runId, sessionId } = run;
  store.writeAlong(savePromptSizes, { laneKey, epoch, runId, sessionId, instructionTokens, toolTokens });
}

function tokensOf(text: string): number {
  return Math.ceil(text.length / unitsPerToken);
}
