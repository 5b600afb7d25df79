import type { Span } from '#contracts/span.ts';

/** Keeps the first `most` spans of a text; links before styles, since their addresses exist nowhere else. */
export function fitSpans(spans: readonly Span[], most: number): readonly Span[] {
  if (spans.length <= most) return spans;
  const links = spans.filter(({ kind }) => kind === 'link').slice(0, most);
  const others = spans.filter(({ kind }) => kind !== 'link').slice(0, most - links.length);
  const kept = new Set([...links, ...others]);
  return spans.filter((span) => kept.has(span));
}
