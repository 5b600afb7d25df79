import { type Additions, textOrNull } from './notation.ts';

/** Choices of a conversation: how its answers are shown. */
export const addDisplay = {
  columns: { sessions: { verbose: textOrNull, reasoningShown: textOrNull } },
} satisfies Additions;
