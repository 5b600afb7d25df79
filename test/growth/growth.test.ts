import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatMarkdown } from '../../src/replies/markdown.ts';
import { sanitizeOutbound } from '../../src/replies/scaffolding.ts';
import { isLong } from '../support/long-run.ts';
import { turn } from '../support/turn.ts';
import { growthOf } from './measure.ts';
import { outsideParsers } from './outside-parsers.ts';
import { type Parser, parsers } from './parsers.ts';
import { knownShapes, type Shape, shapes, textOf } from './shapes.ts';

const seed = Number(process.env.PARLEY_SEED ?? Date.now() % 1_000_000);
const generated = fc.sample(shapes, { numRuns: isLong ? 1_000 : 100, seed });
const longest = isLong ? 64_000 : 4_000;
/** As long as a model's answer may be, for the parsers that read one: small jumps in cost only show at this length. */
const longestKnown = isLong ? 64_000 : 16_000;

/** Budget for the shapes of one kind per parser, ms of processor time; each run starts with other shapes. */
const budgetMs = isLong ? Number.POSITIVE_INFINITY : 60;

/** Returns the shapes for which twice the length takes more than three times as long. */
function steepShapes(
  { run, isSlow }: Parser,
  tried: readonly Shape[],
  length: number,
  comparisons?: number,
): readonly string[] {
  const steep: string[] = [];
  const before = process.cpuUsage();
  const spentMs = () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  for (const shape of tried) {
    const growing = { run, textOf: (size: number) => textOf(shape, size) };
    const verdict = growthOf(growing, isSlow === true ? longest / 2 : length, comparisons);
    if (verdict.kind === 'steep') steep.push(`${JSON.stringify(shape)} × ${verdict.growth.toFixed(1)}`);
    if (spentMs() > budgetMs) break;
  }
  return steep;
}

/** Rotates the shapes by the seed: a later run starts with those that the budget has left out. */
function turned(all: readonly Shape[]): readonly Shape[] {
  const first = seed % all.length;
  return [...all.slice(first), ...all.slice(0, first)];
}

describe(`the time for a text twice as long (seed ${seed})`, () => {
  const all = [...parsers, ...outsideParsers].map((parser, index) => ({ parser, name: parser.name, index }));
  it.each(all)(
    'takes at most three times as long for a text twice as long: $name',
    { timeout: isLong ? 3_600_000 : 600_000 },
    ({ parser, index }) => {
      // One day the shapes that are known for half of the parsers and new ones for the others, the next day vice versa.
      const isKnownsTurn = (index + turn) % 2 === 0;
      if (isLong || isKnownsTurn) expect(steepShapes(parser, turned(knownShapes), longestKnown)).toEqual([]);
      if (isLong || !isKnownsTurn) expect(steepShapes(parser, generated, longest)).toEqual([]);
    },
  );

  it('takes at most three times as long for twice as many unclosed ticks, in ever longer runs', () => {
    // Searching for the end of each run takes time proportional to the text's length to the power of 1.5. The length
    // grows faster than the number that is doubled, so that this shows.
    const textOf = (size: number) =>
      `<${Array.from({ length: Math.floor(size ** (2 / 3)) }, (_, index) => '`'.repeat(index + 1)).join(' ')}`;
    expect(growthOf({ run: sanitizeOutbound, textOf }, 12_000).kind).not.toBe('steep');
  });

  it('takes at most three times as long for an answer twice as long', () => {
    const section =
      '## A\n\nSome **bold `code` words** in [a link](https://x.example).\n\n- one\n- **two**\n\n```\nx\n```\n\n';
    const textOf = (size: number) => section.repeat(Math.ceil(size / section.length));
    expect(growthOf({ run: formatMarkdown, textOf }, 32_000).kind).toBe('linear');
  });

  it.each<Parser>([
    { name: 'a pattern that backtracks', run: (text) => /^(\s*)\[/gim.test(text) },
    {
      name: 'a look at all the rest for each sign',
      run: (text) => {
        let seen = 0;
        for (let at = 0; at < text.length; at += 1)
          for (let next = at; next < text.length; next += 1) seen += text.charCodeAt(next);
        return seen;
      },
    },
  ])('would notice a steeper growth: $name', (parser) => {
    const shape = { prefix: '', unit: '\n', closing: '', suffix: '' };
    // Long enough that no machine is too fast for a comparison. One at each of the two lengths: further ones only
    // keep a slow moment from making a linear parser look steep.
    expect(steepShapes(parser, [shape], longestKnown / 2, 2)).not.toEqual([]);
  });
});
