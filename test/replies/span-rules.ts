import { expect } from 'vitest';
import type { FormattedText } from '#contracts/formatted-text.ts';

/** Checks what every network may rely on: see FormattedTextWriter. */
export function expectLawfulSpans({ text, spans }: FormattedText): void {
  let previous = { start: 0, length: Number.MAX_SAFE_INTEGER };
  const outer: (typeof spans)[number][] = [];
  for (const span of spans) {
    expect(span.length).toBeGreaterThan(0);
    expect(span.start).toBeGreaterThanOrEqual(0);
    expect(span.start + span.length).toBeLessThanOrEqual(text.length);
    const isOrdered =
      span.start > previous.start || (span.start === previous.start && span.length <= previous.length);
    expect(isOrdered).toBe(true);
    previous = span;
    while (outer.length > 0) {
      const last = outer.at(-1);
      if (last && last.start + last.length > span.start) break;
      outer.pop();
    }
    for (const around of outer) {
      expect(span.start + span.length).toBeLessThanOrEqual(around.start + around.length);
      expect(around.kind).not.toBe(span.kind);
      expect(['code', 'code-block']).not.toContain(around.kind);
      if (span.kind === 'code' || span.kind === 'code-block') expect(around.kind).toBe('quote');
    }
    outer.push(span);
  }
}
