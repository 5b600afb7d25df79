/**
 * Answers whose sending is cut off before the network says what became of it: taken or not, by a connection that
 * breaks or a proxy that answers instead. `npm run proof:sends` makes 10,000 of them; `PARLEY_SEED` makes the same ones
 * again.
 */
import { expect, test } from 'vitest';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import { isLong } from '../support/long-run.ts';
import { shareOf } from '../support/turn.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { forCrowd } from './crowd.ts';
import { discordNetwork } from './networks/discord.ts';
import type { Network } from './networks/network.ts';
import { signalNetwork } from './networks/signal.ts';
import { telegramNetwork } from './networks/telegram.ts';
import { createRandom } from './random.ts';
import { openStage } from './stage.ts';

const seed = Number(process.env.PARLEY_SEED ?? Date.now() % 1_000_000_000);
const all = [telegramNetwork, discordNetwork, signalNetwork];
const asked = Number(process.env.AMBIGUOUS_SENDS ?? (isLong ? 10_000 : 0));
const chosen: readonly Network[] = asked > 0 ? all : shareOf(all, 3);
const people = asked > 0 ? 100 : 20;
const rounds = Math.max(2, Math.ceil(asked / chosen.length / people));

/** The faults that leave open whether the network has taken the answer, and end at once. */
const isAmbiguous =
  /^(?:takes an answer and (?:is cut before it says so|says 502)|is cut before it takes|stands behind)/;

test.for(chosen)(
  `has an end for every ambiguous send on $name (seed ${seed})`,
  { timeout: 3_600_000 },
  async (network, { onTestFinished }) => {
    const config = { ...forCrowd, rateLimit: { perSenderPerMinute: 100_000 } };
    const stage = await openStage({ config, networks: [network.part] }, onTestFinished);
    const { dataDir, model } = stage;
    /** The questions with which the agent was told that its last answer may not have arrived. */
    const warned = new Set<string>();
    model.script((body) => {
      const heard = lastUserText(body);
      const name = /q\d+-\d+$/.exec(heard)?.[0] ?? '';
      if (heard.includes('[Note from the gateway]')) warned.add(name);
      return { text: `Answer to ${name}.` };
    });
    await stage.start();
    const faults = network.sendFaults.filter(({ what }) => isAmbiguous.test(what));
    const random = createRandom(seed);
    const crowd = Array.from({ length: people }, (_, index) => stage.person(network.channel, 3001 + index));
    for (let round = 0; round <= rounds; round += 1) {
      // In the last round, everybody only hears what became of the one before.
      if (round < rounds) for (const _ of crowd) faults[Math.floor(random() * faults.length)]?.arm(stage);
      for (const [index, person] of crowd.entries()) person.says(`Question q${round}-${index}`);
      await untilAtRest(dataDir, people * (round + 1));
    }

    const found = { sent: 0, unknown: 0, lost: 0, doubled: 0, silent: [] as string[] };
    const ends = readEnds(dataDir);
    for (const [index, person] of crowd.entries()) {
      const standing = person.standing();
      for (let round = 0; round < rounds; round += 1) {
        const name = `q${round}-${index}`;
        const times = standing.filter((text) => text === `Answer to ${name}.`).length;
        const end = ends.get(name);
        if (end === 'sent') found.sent += 1;
        else if (end === 'unknown' && warned.has(`q${round + 1}-${index}`)) found.unknown += 1;
        else found.silent.push(`${name}: ${end}`);
        if (times > 1) found.doubled += 1;
        if (times === 0 && end === 'sent') found.lost += 1;
      }
    }
    const { sent, unknown, ...wrong } = found;
    console.info(
      `${network.name}: ${people * rounds} ambiguous sends, ${sent} sent, ${unknown} unknown and told`,
    );
    expect(wrong).toEqual({ lost: 0, doubled: 0, silent: [] });
    // Discord recognizes a send that is repeated under its nonce; the others can't, so nothing is repeated.
    expect([sent, unknown].indexOf(people * rounds)).toBe(network.channel === 'discord' ? 0 : 1);
    expect(findBreaches(dataDir)).toEqual([]);
  },
);

/** Returns the state of each question's answer, provided that the question's outcome agrees with it. */
function readEnds(dataDir: string): ReadonlyMap<string, unknown> {
  const rows = readStore(
    dataDir,
    `select inbox.content, outbox.state from inbox join outbox on outbox.runId = inbox.runId
      where outbox.purpose = 'reply' and inbox.outcome = 'answered'
      and (outbox.state = 'unknown') = (coalesce(outcomeReason, '') = 'delivery unknown')`,
  );
  return new Map(rows.map(({ content, state }) => [/q\d+-\d+/.exec(String(content))?.[0] ?? '', state]));
}
