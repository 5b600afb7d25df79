import type { Span } from '#contracts/span.ts';

/** At most so many of a text's spans, the first ones; links before styles, since their addresses stand nowhere else. */
export function fitSpans(spans: readonly Span[], most: number): readonly Span[] {
  if (spans.length <= most) return spans;
  const links = spans.filter(({ kind }) => kind === 'link').slice(0, most);
  const others = spans.filter(({ kind }) => kind !== 'link').slice(0, most - links.length);
  const kept = new Set([...links, ...others]);
  return spans.filter((span) => kept.has(span));
}
