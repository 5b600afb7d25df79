import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Block, type BlockLimits, BlockStream, blocksAfter } from '../../src/replies/block-stream.ts';
import { judgeWritten } from '../../src/replies/reply-pipeline.ts';
import { check, contexts, cutAt, tokenTexts } from './reply-generators.ts';

const limits: BlockLimits = { minChars: 800, maxChars: 1_200 };
const small: BlockLimits = { minChars: 20, maxChars: 60 };

/** Streams the deltas, with a pause after each for which `pauses` says so, and finishes like a final answer. */
function stream(
  deltas: readonly string[],
  { limits, text, sent, pauses = [] }: Streaming,
): { readonly early: readonly Block[]; readonly late: readonly Block[] } {
  const blocks = new BlockStream(limits, sent);
  const early = deltas.flatMap((delta, index) => {
    blocks.push(delta);
    return [...blocks.take('growing'), ...(pauses[index] ? blocks.take('paused') : [])];
  });
  return { early, late: blocksAfter(text, blocks.sent, limits) };
}

type Streaming = {
  readonly limits: BlockLimits;
  /** What the final decision leaves of the text. */
  readonly text: string;
  readonly sent?: readonly Block[];
  readonly pauses?: readonly boolean[];
};

const sourceOf = (blocks: readonly Block[]) => blocks.map(({ source }) => source).join('');

/** Says whether every fence of a Markdown text is closed. */
function isBalanced(markdown: string): boolean {
  let open: string | undefined;
  for (const line of markdown.split('\n')) {
    const [, marker = ''] = /^[ \t]*(`{3,}(?=[^`]*$)|~{3,})/.exec(line) ?? [];
    if (open === undefined) open = marker === '' ? undefined : marker;
    else if (marker.startsWith(open) && line.trim() === marker) open = undefined;
  }
  return open === undefined;
}

const pieces = fc.constantFrom(
  'It is done. ',
  'Wirklich? ',
  'word ',
  'a-very-long-word-without-any-break-in-it-that-is-longer-than-a-block-may-be ',
  '\n',
  '\n\n',
  '```ts\n',
  '```\n',
  '````\n',
  '~~~\n',
  'const a = 1;\n',
  '    indented\n',
  '- item\n',
  '1. one\n',
  '| a | b |\n',
  '|---|---|\n',
  '# Title\n',
  '好的。没问题！',
  '👨‍👩‍👧',
  'é',
  '🏴󠁧󠁢󠁥󠁮󠁧󠁿',
  '**bold** ',
  '`code` ',
  'NO_REPLY',
  'ANNOUNCE_SKIP\n',
  'HEARTBEAT_OK ',
  '[[reply_to:12]]',
);
const texts = fc.array(pieces, { maxLength: 40 }).map((parts) => parts.join(''));
const written = fc.oneof(texts, tokenTexts);
const cuts = fc.array(fc.nat(), { maxLength: 40 });
const pauses = fc.array(fc.boolean(), { maxLength: 40 });

describe('an answer in blocks', () => {
  it('sends a block at the first paragraph behind its least length', () => {
    const [first, second] = ['a '.repeat(450), 'b '.repeat(450)].map((each) => each.trim());
    const text = `${first}\n\n${second}`;
    const { early, late } = stream([...text], { limits, text });
    expect(early.map(({ markdown }) => markdown)).toEqual([first]);
    expect(late.map(({ markdown }) => markdown)).toEqual([second]);
  });

  it('closes a fence at the end of a block and reopens it in the next', () => {
    const code = Array.from({ length: 100 }, (_, line) => `const line${line} = 'some text';`);
    const text = `Look:\n\n\`\`\`ts\n${code.join('\n')}\n\`\`\`\n\nThat is all.`;
    const { early, late } = stream([...text], { limits, text });
    const blocks = [...early, ...late].map(({ markdown }) => markdown);
    expect(blocks.length).toBeGreaterThan(2);
    for (const block of blocks) expect(isBalanced(block)).toBe(true);
    expect(blocks[1]).toMatch(/^```ts\nconst line/);
    const shown = blocks.flatMap((block) => block.split('\n')).filter((line) => line.startsWith('const'));
    expect(shown).toEqual(code);
  });

  it('sends a shorter block in a pause, up to the end of a sentence', () => {
    const blocks = new BlockStream(limits);
    blocks.push('Let me look. I will be ba');
    expect(blocks.take('growing')).toEqual([]);
    expect(blocks.take('paused').map(({ markdown }) => markdown)).toEqual(['Let me look.']);
    blocks.push('ck.');
    expect(blocks.take('ended').map(({ markdown }) => markdown)).toEqual(['I will be back.']);
  });

  it.each([
    'NO_REPLY.',
    'NO_REPLY.\n\nNO_REPLY.',
    '**no_reply**',
    '{"action":"NO_REPLY"}',
    'ANNOUNCE_SKIP',
    'HEARTBEAT_OK',
  ])('sends no prefix of %j, however long the pause', (token) => {
    const blocks = new BlockStream(small);
    for (const character of token) {
      blocks.push(character);
      expect([...blocks.take('growing'), ...blocks.take('paused')]).toEqual([]);
    }
  });

  it('repeats no block when the text is written again', () => {
    const text = 'One sentence here. Two sentences here. Three sentences here. Four of them. '
      .repeat(4)
      .trim();
    const blocks = new BlockStream(small);
    blocks.push(text.slice(0, 150));
    const before = blocks.take('growing');
    expect(before.length).toBeGreaterThan(1);
    blocks.reset();
    const after = [...text].flatMap((character) => {
      blocks.push(character);
      return blocks.take('growing');
    });
    const late = blocksAfter(text, blocks.sent, small);
    expect(sourceOf([...before, ...after, ...late])).toBe(text);
  });

  it('sends another text whole after blocks of a discarded one', () => {
    const blocks = new BlockStream(small);
    blocks.push('This is what I thought at first. And it was wrong. ');
    expect(blocks.take('paused')).not.toEqual([]);
    blocks.reset();
    const text = 'This is another answer altogether. It is right.';
    expect(sourceOf(blocksAfter(text, blocks.sent, small))).toBe(text);
  });

  it('makes up the final text at every chunking, whatever its turn took', () => {
    check(
      fc.property(written, contexts, cuts, pauses, (text, context, cuts, pauses) => {
        const verdict = judgeWritten(text, context);
        const final = verdict.kind === 'silent' ? '' : verdict.text;
        const { early, late } = stream(cutAt(text, cuts), { limits: small, text: final, pauses });
        if (verdict.kind === 'silent' && !context.includes('heartbeat')) expect(early).toEqual([]);
        if (verdict.kind === 'silent') return;
        expect(sourceOf([...early, ...late])).toBe(final);
      }),
    );
  });

  it('keeps blocks within their limits, fences balanced and characters whole', () => {
    const characters = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
    check(
      fc.property(texts, cuts, pauses, (text, cuts, pauses) => {
        const verdict = judgeWritten(text, ['chat']);
        if (verdict.kind === 'silent') return;
        const { early, late } = stream(cutAt(text, cuts), { limits: small, text: verdict.text, pauses });
        let end = 0;
        for (const { markdown, source } of [...early, ...late]) {
          expect(markdown.length).toBeLessThanOrEqual(small.maxChars);
          if (!isBalanced(markdown)) expect(markdown).toBe('balanced');
          end += source.length;
          const from = Math.max(0, end - 100);
          const inside = characters.segment(verdict.text.slice(from)).containing(end - from);
          if (inside) expect(inside.index).toBe(end - from);
        }
      }),
    );
  });

  it('resumes behind the blocks that were stored, at every cut of an identical text', () => {
    check(
      fc.property(texts, fc.nat(), cuts, (text, cut, cuts) => {
        const verdict = judgeWritten(text, ['chat']);
        if (verdict.kind === 'silent') return;
        const first = new BlockStream(small);
        first.push(text.slice(0, cut % (text.length + 1)));
        const before = first.take('growing');
        const again = { limits: small, text: verdict.text, sent: before };
        const { early, late } = stream(cutAt(text, cuts), again);
        expect(sourceOf([...before, ...early, ...late])).toBe(verdict.text);
      }),
    );
  });

  it.each([
    ['ticks', '`'.repeat(16_000)],
    ['ticks behind a word', `word ${'`'.repeat(16_000)}\n\nIt is done.`],
    ['waves', '~'.repeat(16_000)],
  ])('cuts a long row of %s into as few blocks as another text', (_of, text) => {
    const blocks = blocksAfter(text, [], limits);
    expect(sourceOf(blocks)).toBe(text);
    expect(blocks.length).toBeLessThan(20);
  });

  it('cuts a text of a megabyte', () => {
    const line = 'A sentence of some length that says little. ';
    const paragraph = `${line.repeat(9).trim()}\n\n\`\`\`\n${'code();\n'.repeat(9)}\`\`\`\n\n`;
    const text = paragraph.repeat(Math.ceil(1_000_000 / paragraph.length)).trim();
    const { early, late } = stream(text.match(/[\s\S]{1,400}/g) ?? [], { limits, text });
    expect(sourceOf([...early, ...late])).toBe(text);
  });
});
