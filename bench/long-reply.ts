import { capabilities as discord } from '../channels/discord/capabilities.ts';
import { capabilities as signal } from '../channels/signal/capabilities.ts';
import { capabilities as telegram } from '../channels/telegram/capabilities.ts';
import { createMarkdownFormatter } from '../src/replies/markdown-formatter.ts';
import { createTextShaper, type TextShaper } from '../src/replies/text-shaper.ts';
import { silentLog } from '../test/support/silent-log.ts';
import type { Figure } from './figure.ts';
import { median } from './statistics.ts';

const networks = { Telegram: telegram, Discord: discord, Signal: signal };
const [quarter, whole] = [25_000, 100_000];

/**
 * Shapes an answer of 100 kB, and one of a quarter of it, for each network. In processor time, because the parser's
 * thread and the event loop wait for each other's core on a busy machine.
 */
export async function measureLongReply(rounds: number): Promise<readonly Figure[]> {
  const formatter = createMarkdownFormatter({ log: silentLog, limits: { parseMs: 60_000, totalMs: 60_000 } });
  const shaper = createTextShaper(formatter);
  try {
    const figures: Figure[] = [];
    for (const [name, { text: limits }] of Object.entries(networks)) {
      const times = { short: [] as Shaping[], long: [] as Shaping[] };
      // The first round compiles.
      for (let round = 0; round <= rounds; round += 1) {
        const [short, long] = [await shaping(shaper, quarter, limits), await shaping(shaper, whole, limits)];
        if (round > 0) times.short.push(short);
        if (round > 0) times.long.push(long);
      }
      figures.push(...figuresOf(name, times));
    }
    return figures;
  } finally {
    await formatter.close();
  }
}

type Shaping = { readonly allMs: number; readonly ownMs: number; readonly gapMs: number };

function figuresOf(
  name: string,
  { short, long }: { readonly short: readonly Shaping[]; readonly long: readonly Shaping[] },
): readonly Figure[] {
  const middle = (all: readonly Shaping[], key: keyof Shaping) => median(all.map((one) => one[key]));
  const [total, part] = [middle(long, 'allMs'), middle(short, 'allMs')];
  return [
    { name: `${name}: processor time for 100 kB`, unit: 'ms', parley: total, target: '' },
    { name: `${name}: the same, against 25 kB`, unit: '×', parley: total / part, target: '≤ 4' },
    { name: `${name}: of it on the event loop`, unit: 'ms', parley: middle(long, 'ownMs'), target: '' },
    {
      name: `${name}: longest turn of the event loop`,
      unit: 'ms',
      parley: middle(long, 'gapMs'),
      target: '≤ 5 ms',
    },
  ];
}

async function shaping(
  shaper: TextShaper,
  length: number,
  limits: Parameters<TextShaper['shape']>[1],
): Promise<Shaping> {
  const answer = anAnswer(length);
  const before = process.cpuUsage();
  const turns = watchTurns();
  await shaper.shape(answer, limits);
  return { allMs: ms(process.cpuUsage(before)), ...turns() };
}

/** Returns a function that says how much processor time this thread has used since, and most between two timers. */
function watchTurns(): () => Pick<Shaping, 'ownMs' | 'gapMs'> {
  const begun = process.threadCpuUsage();
  let last = begun;
  let gapMs = 0;
  const look = () => {
    gapMs = Math.max(gapMs, ms(process.threadCpuUsage(last)));
    last = process.threadCpuUsage();
  };
  const timer = setInterval(look, 1);
  return () => {
    clearInterval(timer);
    look();
    return { ownMs: ms(process.threadCpuUsage(begun)), gapMs };
  };
}

function ms({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1_000;
}

/** An answer as models write them, with nearly every kind of block. */
function anAnswer(length: number): string {
  let answer = '';
  for (let section = 1; answer.length < length; section += 1) answer += aSection(section);
  return answer.slice(0, length);
}

function aSection(section: number): string {
  return `## Section ${section}

Some **bold** words about *topic ${section}*, with \`code\` and [a link](https://x.example/${section}).
A second sentence follows, plain and of the usual length, so that it reads like prose.

- one item
- another **item** here
  - nested

\`\`\`ts
const x${section} = [1, 2, 3];
\`\`\`

| a | b |
|---|---|
| 1 | ${section} |

`;
}
