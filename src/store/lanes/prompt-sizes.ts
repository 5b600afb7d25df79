import type { StoreCommand } from '../base/command.ts';
import { changeRow } from '../base/row-by-key.ts';
import { lockLaneAt } from '../rows/lane-row.ts';
import type { RunFence } from '../rows/run-fence.ts';

/** Sizes of what every request begins with, in estimated tokens. */
export type PromptSizes = { readonly instructionTokens: number; readonly toolTokens: number };

/** Records the sizes for `/context`, along with another commit: they are only displayed. */
export const savePromptSizes: StoreCommand<RunFence & PromptSizes & { readonly sessionId: string }, void> = {
  name: 'savePromptSizes',
  run: async (tx, { laneKey, epoch, sessionId, instructionTokens, toolTokens }) => {
    await lockLaneAt(tx, laneKey, epoch);
    await changeRow(tx, 'sessions', sessionId, { instructionTokens, toolTokens });
  },
};
