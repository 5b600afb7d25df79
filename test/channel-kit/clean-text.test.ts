import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fitBytes, fitChars } from '../../src/channel-kit/clean-text.ts';
import { budget, holds } from '../support/holds.ts';

const anyText = fc
  .array(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\ud800', '\udc00', '\u0000')))
  .map((all) => all.join(''));

describe('cutting text', () => {
  it('cuts text to the limit without half characters, and keeps text that fits', () =>
    holds(
      fc.property(anyText, fc.integer({ min: 120, max: 400 }), (text, limit) => {
        const clean = text.toWellFormed().replaceAll('\u0000', '\ufffd');
        for (const [fitted, size] of [
          [fitBytes(text, limit), Buffer.byteLength],
          [fitChars(text, limit), (each: string) => each.length],
        ] as const) {
          expect(size(fitted)).toBeLessThanOrEqual(limit);
          expect(fitted.isWellFormed()).toBe(true);
          expect(fitted).not.toContain('\u0000');
          if (size(clean) <= limit) expect(fitted).toBe(clean);
          else expect(clean.startsWith(fitted.split('\n[cut here')[0] ?? 'no')).toBe(true);
        }
      }),
      budget(5000),
    ));
});
