import { type Additions, text, textOrNull } from './notation.ts';

/** Messages that bear a quiet reaction, or are to bear one. */
export const addMarks = {
  tables: {
    marks: {
      columns: { inboxId: text, laneKey: text, waiting: textOrNull, taken: textOrNull, told: textOrNull },
      key: ['inboxId'],
    },
  },
} satisfies Additions;
