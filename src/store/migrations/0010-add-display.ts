import { type Additions, textOrNull } from './notation.ts';

/** What a conversation shows besides its answers. */
export const addDisplay = {
  columns: { sessions: { verbose: textOrNull, reasoningShown: textOrNull } },
} satisfies Additions;
