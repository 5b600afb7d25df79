import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { printable, rowsOf } from '../../src/cli/chat-screen.ts';
import { holds } from '../support/holds.ts';

describe('printable', () => {
  it('removes whole escape sequences', () => {
    expect(
      printable('\u001b[31mred\u001b[0m \u001b]8;;https://evil\u001b\\link\u001b]8;;\u001b\\ \u001bcend'),
    ).toBe('red link end');
  });

  it('removes all control and direction characters in one pass', () => {
    holds(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const shown = printable(text);
        expect(shown).not.toMatch(/[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/u);
        expect(printable(shown)).toBe(shown);
      }),
      { interruptAfterTimeLimit: 1000, numRuns: 20_000 },
    );
  });

  it('cuts rows that fit the screen without losing text', () => {
    expect(rowsOf('abcdef\n日本語', 4)).toEqual(['abcd', 'ef', '日本', '語']);
    expect(rowsOf('to be or not', 5)).toEqual(['to be ', 'or ', 'not']);
    expect(rowsOf('  abcdefgh', 6)).toEqual(['  abcd', 'efgh']);
    holds(
      fc.property(fc.string(), fc.integer({ min: 2, max: 20 }), (text, columns) => {
        const line = text.replaceAll(/[\n\t]/g, '');
        expect(rowsOf(line, columns).join('')).toBe(line);
      }),
      { interruptAfterTimeLimit: 500, numRuns: 5000 },
    );
  });
});
