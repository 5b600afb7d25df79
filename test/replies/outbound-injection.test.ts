import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isLong } from '../support/long-run.ts';
import { aReply, shapeReply } from './reply-builders.ts';
import { expectLawfulSpans } from './span-rules.ts';

const count = isLong ? 5_000 : 500;

const hostile = fc
  .array(
    fc.constantFrom(
      '@everyone',
      '@here',
      '<@123>',
      '<@&456>',
      '[x](tg://user?id=1)',
      '[a](tg://resolve?domain=b)',
      '<tg://user?id=7>',
      '[https://bank.example](https://evil.example)',
      '[x](javascript:alert(1))',
      '[x](discord://-/channels/1)',
      '![i](tg://user?id=2)',
      '\u202e',
      '\u2066',
      '\u200b',
      '\u2060',
      '\ufeff',
      '\u001b[31m',
      '\u001b]8;;https://evil.example\u0007',
      '\u001b]0;t',
      '\u009b2J',
      '\u0000',
      '\u0007',
      '\ud83d',
      '\udc00',
      '**',
      '__',
      '~~',
      '`',
      '```',
      '```js\n',
      '||',
      '[',
      '](',
      ')',
      '<b>',
      '</b>',
      '<a href="tg://user?id=3">',
      '&lt;',
      '\\',
      '\n',
      '\n\n',
      '\r',
      '> ',
      '- ',
      '# ',
      '| a |\n|---|\n',
      'Hello',
      ' ',
      'word ',
      '👨‍👩‍👧',
      '<think>',
      '</think>',
      '<|im_end|>',
      '<<<untrusted 1 x>>>',
    ),
    { minLength: 1, maxLength: 40 },
  )
  .map((parts) => parts.join(''));

describe('outbound injection (threat 11)', () => {
  it('delivers generated replies without unsafe links, controls, half entities or scaffolding', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const plan = shapeReply(
          aReply({ text: `Hello ${text}`, capabilities: { text: { maxLength: 60 }, canReact: true } }),
        );
        // "Hello" survives in any case, so something is always sent.
        expect(plan.kind).toBe('send');
        if (plan.kind !== 'send') return;
        for (const { content } of plan.parts) {
          if (content.kind !== 'text') continue;
          const formatted = content.text;
          expectLawfulSpans(formatted);
          expect(formatted.text.length).toBeLessThanOrEqual(60);
          expect(formatted.text.isWellFormed()).toBe(true);
          expect(formatted.text).not.toMatch(/[^\P{Cc}\n\t]/u);
          expect(formatted.text).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u200b\u2060\ufeff]/);
          for (const span of formatted.spans) {
            if (span.kind === 'link') expect(new URL(span.url).protocol).toMatch(/^(?:https?|mailto|tel):$/);
          }
        }
      }),
      { numRuns: count },
    );
  });
});
