import { type Additions, text, textOrNull } from './notation.ts';

/** The skills that each run began with: a resumed run has the same ones. */
export const addSkills = {
  tables: { skillSnapshots: { columns: { id: text, data: text }, key: ['id'] } },
  columns: { runs: { skills: textOrNull } },
} satisfies Additions;
