/**
 * A process that was stopped past its lease no longer holds it: whatever it still tries to write is
 * rejected, and nothing is answered twice. `PARLEY_LONG=1` pauses 500 times (PROOF_PAUSES: any number,
 * PROOF_SEED: the same moments again).
 */

import { describe, expect, it, onTestFinished } from 'vitest';
import { isLong } from '../support/long-run.ts';
import { databaseServer } from './own-database.ts';
import { playPauseRound } from './pause-round.ts';

const pauses = Number(process.env.PROOF_PAUSES ?? (isLong ? 500 : 5));
const perRound = 25;
const seed = Number(process.env.PROOF_SEED ?? (isLong ? Date.now() % 1e9 : 20_261_121));

describe.skipIf(databaseServer === undefined)('two processes on one PostgreSQL', () => {
  const rounds = Array.from({ length: Math.ceil(pauses / perRound) }, (_, index) => seed + index);

  it.each(rounds)(
    'answers everything once, whichever of two processes is suspended (seed %d)',
    async (own) => {
      const count = Math.min(pauses, perRound);
      const report = await playPauseRound({ pauses: count, seed: own }, 'postgres', (end) =>
        onTestFinished(end),
      );
      const { messages, takeovers, refused, unknown, wrong } = report;
      console.info(
        `seed ${own}: ${count} pauses, ${messages} messages, ${takeovers} runs taken over, ${refused} old holders turned away, ${unknown} unknown, ${wrong.length} wrong`,
      );
      expect(wrong, `seed ${own}`).toEqual([]);
    },
    300_000,
  );
});
