import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isLong } from '../support/long-run.ts';
import { aReply, shapeReply } from './reply-builders.ts';
import { hostileReply } from './reply-generators.ts';
import { expectLawfulSpans } from './span-rules.ts';

const count = isLong ? 5_000 : 500;

describe('outbound injection (threat 11)', () => {
  it('delivers generated replies without unsafe links, controls, half entities or scaffolding', () => {
    fc.assert(
      fc.property(hostileReply, (text) => {
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
