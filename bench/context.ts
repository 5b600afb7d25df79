import { setTimeout as sleep } from 'node:timers/promises';
import type { Figure } from './figure.ts';
import { botSays } from './network.ts';
import type { Bench } from './pair.ts';
import { cpuMs } from './process-figures.ts';
import { median } from './statistics.ts';

const [person, other] = [50_000, 50_001];
/** Turns of another conversation beforehand, so that the process is warm when the measurement starts. */
const warmUps = 150;
/** Lengths, in messages including answers, at which turns are measured; 500: before the first summary. */
const lengths = [10, 100, 500, 1_000, 10_000] as const;
/** How many turns are measured; at the longest length, the number between two summaries, so that one is included. */
const [few, betweenSummaries] = [50, 200] as const;
const answer = ' That is all there is to say about it, for now at least.'.repeat(3);

/** Measures Parley's own cost per turn of a conversation that grows to `most` messages. */
export async function measureContext(
  { subject, model, networks: [network] }: Bench,
  most: number,
): Promise<readonly Figure[]> {
  model.answerWith(({ texts }) => {
    const said = texts.at(-1) ?? '';
    return { text: said.includes('</conversation>') ? 'They talked.' : `${said}${answer}` };
  });
  const say = async (from: number, text: string): Promise<number> => {
    const request = model.hears(text);
    const reply = botSays(network, from, text);
    const saidAt = network.say(from, text);
    await reply;
    return (await request).at - saidAt;
  };
  let turns = 0;
  const turn = () => {
    turns += 1;
    return say(person, `turn ${turns}.`);
  };
  for (let index = 0; index < warmUps; index += 1) await say(other, `warm-up ${index}.`);
  const figures: Figure[] = [];
  for (const length of lengths.filter((each) => each <= most)) {
    while (2 * turns < length) await turn();
    // The last commits follow the last answer.
    await sleep(300);
    const before = cpuMs(subject.pid);
    const times: number[] = [];
    const count = length === 10_000 ? betweenSummaries : few;
    for (let index = 0; index < count; index += 1) times.push(await turn());
    await sleep(300);
    const name = `turn after ${length.toLocaleString('en')} messages`;
    const target = length === 10_000 ? '≤ 2 × after 10' : '';
    const processor = (cpuMs(subject.pid) - before) / count;
    figures.push(
      { name: `${name}: processor time`, unit: 'ms', parley: processor, target },
      { name: `${name}: update → model request`, unit: 'ms', parley: median(times), target },
    );
  }
  return figures;
}
