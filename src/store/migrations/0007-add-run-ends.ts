import { type Additions, bigintOrNull } from './notation.ts';

/** The order in which the runs of a lane have ended, for followers who come back. */
export const addRunEnds = {
  columns: { runs: { endNumber: bigintOrNull } },
  indexes: { runs: { runsEnded: { on: ['laneKey', 'endNumber'], where: `"endNumber" is not null` } } },
} satisfies Additions;
