import { afterEach, describe, expect, it } from 'vitest';
import { plainText } from '../../src/contracts/formatted-text.ts';
import { formatMarkdown } from '../../src/replies/markdown.ts';
import {
  createMarkdownFormatter,
  type FormatterLimits,
  type MarkdownFormatter,
} from '../../src/replies/markdown-formatter.ts';
import { createTextShaper } from '../../src/replies/text-shaper.ts';
import { silentLog } from '../support/silent-log.ts';

/** Keeps the parser busy for minutes. */
const endless = 'www.a_'.repeat(16_000);
const long = `# A title\n\n${'Some **bold** words, and [a link](https://x.example/a).\n\n'.repeat(400)}`;

describe('the formatter of long texts', () => {
  const formatters: MarkdownFormatter[] = [];
  const aDesk = (limits: Partial<FormatterLimits> = {}) => {
    const formatter = createMarkdownFormatter({
      log: silentLog,
      limits: { totalMs: 60_000, parseMs: 30_000, ...limits },
    });
    formatters.push(formatter);
    return formatter;
  };
  afterEach(async () => {
    for (const formatter of formatters.splice(0)) await formatter.close();
  });

  it('formats a text as the parser does', async () => {
    expect(await aDesk().format(long)).toEqual(formatMarkdown(long));
  });

  it('returns a text that takes too long unformatted, and parses the next one', async () => {
    const formatter = aDesk({ parseMs: 200 });
    const [given, next] = await Promise.all([formatter.format(endless), formatter.format('**a**')]);
    expect(given).toEqual({ text: endless, spans: [] });
    expect(next.text).toBe('a');
    expect(formatter.counts()).toEqual({ parsed: 1, givenUp: 1 });
  });

  it('returns a text unformatted that is too long, waits too long, or comes too late', async () => {
    const formatter = aDesk({ maxWaiting: 1, totalMs: 300, parseMs: 60_000 });
    const held = formatter.format(endless);
    const refused = await formatter.format('**a**');
    expect(refused).toEqual({ text: '**a**', spans: [] });
    expect(await held).toEqual({ text: endless, spans: [] });
    expect((await formatter.format(`*${'a '.repeat(100_000)}*`)).spans).toEqual([]);
    // As the gateway hands it on, apart from the formatter.
    const { close } = formatter;
    await close();
    expect(await formatter.format('**b**')).toEqual({ text: '**b**', spans: [] });
  });
});

describe('the text shaper', () => {
  it.each(['```\n```', '> ', '```\n'.repeat(2_000)])('shows empty markup as written: %#', async (text) => {
    const limits = { maxLength: 100_000 };
    const format = async () => plainText('');
    const shaper = createTextShaper({ format });
    const shown = await shaper.shape(text, limits);
    expect(shown.map((part) => part.text).join('')).toBe(text.trim());
  });

  it('shapes an ordinary answer at once and passes every other text whole to the formatter', async () => {
    const handed: string[] = [];
    const format = async (text: string) => {
      handed.push(text);
      return { text, spans: [] };
    };
    const shaper = createTextShaper({ format });
    expect(shaper.shape('Hello **you**.', { maxLength: 2_000 })).toEqual([
      { text: 'Hello you.', spans: [{ kind: 'bold', start: 6, length: 3 }] },
    ]);
    expect(handed).toEqual([]);
    for (const hostile of [
      '_a*'.repeat(200),
      'www.a_'.repeat(5_000),
      'a\n=\n'.repeat(16_000),
      'a '.repeat(4_000),
    ]) {
      const chunks = await shaper.shape(hostile, { maxLength: 2_000 });
      expect(
        chunks
          .map(({ text }) => text)
          .join('')
          .replace(/\s/g, ''),
      ).toBe(hostile.replace(/\s/g, ''));
    }
    expect(handed).toHaveLength(4);
  });
});
