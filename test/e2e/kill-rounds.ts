/**
 * `npm run proof:kills`: a thousand kills over 200,000 messages, in rounds of 25 kills over 5,000 messages,
 * each on its own data folder and checked at its end. Settings, all optional:
 * PROOF_KILLS, PROOF_MESSAGES (of all rounds), PROOF_SEED, PROOF_FROM (the round to continue from, of the
 * same seed). Ends with one line and a non-zero exit code if anything was lost or doubled.
 */
import { playKillRound } from './kill-round.ts';

const perRound = { kills: 25, messages: 5_000 };
const kills = Number(process.env.PROOF_KILLS ?? 1_000);
const messages = Number(process.env.PROOF_MESSAGES ?? kills * 200);
const seed = Number(process.env.PROOF_SEED ?? Date.now() % 1e9);
const first = Number(process.env.PROOF_FROM ?? 1);
const rounds = Math.max(1, Math.round(kills / perRound.kills));
const began = performance.now();
const sum = { kills: 0, atPoints: 0, messages: 0, unknown: 0, givenUp: 0, wrong: 0 };

for (let round = first; round <= rounds; round++) {
  const since = performance.now();
  const share = { kills: Math.round(kills / rounds), messages: Math.round(messages / rounds) };
  const report = await playKillRound({ ...share, seed: seed + round });
  sum.kills += report.kills;
  sum.atPoints += report.atPoints;
  sum.messages += report.messages;
  sum.unknown += report.unknown;
  sum.givenUp += report.givenUp;
  sum.wrong += report.wrong.length;
  const seconds = (performance.now() - since) / 1000;
  console.log(
    `round ${round} of ${rounds} (PROOF_SEED=${seed} PROOF_FROM=${round}): ${report.messages} messages, ${report.kills} kills in ${seconds.toFixed(0)} s, ${(report.messages / seconds).toFixed(0)}/s; ${report.unknown} unknown, ${report.givenUp} given up, ${report.wrong.length} wrong`,
  );
  for (const line of report.wrong.slice(0, 20)) console.log(`  ${line}`);
}
const minutes = ((performance.now() - began) / 60_000).toFixed(1);
console.log(
  `${sum.kills} kills (${sum.atPoints} at a point in the code) over ${sum.messages} messages in ${minutes} min, seed ${seed}: ${sum.wrong} lost or doubled, ${sum.unknown} sends reported unknown, ${sum.givenUp} messages given up and told`,
);
process.exitCode = sum.wrong === 0 ? 0 : 1;
