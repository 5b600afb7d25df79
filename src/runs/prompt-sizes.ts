import type { SystemBlock } from '#contracts/model.ts';
import type { Tool } from '#contracts/tool.ts';
import { unitsPerToken } from '../agent/context-size.ts';
import { specsLength } from '../agent/tool-specs.ts';
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
  const instructionTokens = tokensOf(system.reduce((length, { text }) => length + text.length, 0));
  const toolTokens = tools.length === 0 ? 0 : tokensOf(specsLength(tools));
  if (instructionTokens === sizes.instructionTokens && toolTokens === sizes.toolTokens) return;
  const { laneKey, epoch, runId, sessionId } = run;
  store.writeAlong(savePromptSizes, { laneKey, epoch, runId, sessionId, instructionTokens, toolTokens });
}

function tokensOf(length: number): number {
  return Math.ceil(length / unitsPerToken);
}
