/** One small round of `npm run proof:kills`; the other kills in CI are in kill-load.test.ts. */
import { expect, it } from 'vitest';
import { playKillRound } from './kill-round.ts';

it('loses, doubles and reorders nothing when killed while many people write', async () => {
  const seed = Number(process.env.PROOF_SEED ?? 20_261_121);
  const { wrong, messages } = await playKillRound({ kills: 3, messages: 150, seed });
  expect(wrong, `seed ${seed}`).toEqual([]);
  expect(messages).toBe(150);
}, 180_000);
