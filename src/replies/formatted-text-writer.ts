import type { FormattedText, PlainSpanKind, Span, SpanTable } from '#contracts/formatted-text.ts';

type Mark =
  | PlainSpanKind
  | { readonly heading: number }
  | { readonly link: string }
  | { readonly codeBlock: string | undefined; readonly table?: SpanTable | undefined };
type Open = { readonly mark: Mark; readonly start: number };

/**
 * Builds a FormattedText and keeps its spans in a form that every network accepts: any two are disjoint or
 * nested; code and code blocks contain no spans and are only nested in quotes; no kind is nested in itself;
 * no span is empty or out of range; they are ordered by start, the longer first.
 */
export class FormattedTextWriter {
  #text = '';
  #indent = '';
  readonly #open: Open[] = [];
  readonly #spans: Span[] = [];

  get length(): number {
    return this.#text.length;
  }

  /** Appends text; a line break inside it is followed by the current indentation. */
  write(text: string): void {
    this.#text += this.#indent === '' ? text : text.replaceAll('\n', `\n${this.#indent}`);
  }

  /** Appends text unchanged. */
  writeRaw(text: string): void {
    this.#text += text;
  }

  indented(indent: string, body: () => void): void {
    const outer = this.#indent;
    this.#indent = indent;
    body();
    this.#indent = outer;
  }

  /** Runs `body` and marks what it wrote, unless an outer mark forbids it. */
  marked(mark: Mark, body: () => void): void {
    if (this.#open.some((outer) => forbids(outer.mark, mark))) {
      body();
      return;
    }
    const open = { mark, start: this.#text.length };
    this.#open.push(open);
    body();
    this.#open.pop();
    this.#close(open);
  }

  finish(): FormattedText {
    const text = this.#text.trimEnd();
    const skipped = text.length - text.trimStart().length;
    // An outer span is closed last, but comes before inner ones of the same range.
    const spans = this.#spans.toReversed().flatMap((span) => clip(span, skipped, text.length));
    spans.sort((a, b) => a.start - b.start || b.length - a.length);
    return { text: text.trimStart(), spans: cutAroundCode(spans) };
  }

  #close({ mark, start }: Open): void {
    const length = this.#text.length - start;
    if (length <= 0) return;
    if (typeof mark === 'string') this.#spans.push({ kind: mark, start, length });
    else if ('link' in mark) this.#spans.push({ kind: 'link', start, length, url: mark.link });
    else if ('heading' in mark) this.#spans.push({ kind: 'bold', start, length, level: mark.heading });
    else {
      const language = mark.codeBlock === undefined ? {} : { language: mark.codeBlock };
      const table = mark.table === undefined ? {} : { table: mark.table };
      this.#spans.push({ kind: 'code-block', start, length, ...language, ...table });
    }
  }
}

function forbids(outer: Mark, inner: Mark): boolean {
  if (typeof outer !== 'string' && 'heading' in outer) return forbids('bold', inner);
  if (typeof outer === 'string') return outer === inner || outer === 'code';
  if ('codeBlock' in outer) return true;
  // A link may contain emphasis, but not code, which would split it, nor another link.
  return typeof inner !== 'string' || inner === 'code';
}

function clip(span: Span, from: number, to: number): readonly Span[] {
  const start = Math.max(span.start, from);
  const end = Math.min(span.start + span.length, to);
  return end > start ? [{ ...span, start: start - from, length: end - start }] : [];
}

/** Splits emphasis around the code in it, because networks reject code inside other markup. Linear in ordered spans. */
function cutAroundCode(spans: readonly Span[]): readonly Span[] {
  const codes = spans.filter((span) => span.kind === 'code' || span.kind === 'code-block');
  if (codes.length === 0) return spans;
  let next = 0;
  const cut = spans.flatMap((span) => {
    // Code is never inside code, so what ended before this span began ends before all later ones.
    for (let code = codes[next]; code && code.start + code.length <= span.start; code = codes[next])
      next += 1;
    return isCuttable(span) ? splitAround(span, codes, next) : [span];
  });
  return cut.sort((a, b) => a.start - b.start || b.length - a.length);
}

function isCuttable(span: Span): boolean {
  return span.kind !== 'code' && span.kind !== 'code-block' && span.kind !== 'quote';
}

function splitAround(span: Span, codes: readonly Span[], first: number): readonly Span[] {
  const end = span.start + span.length;
  const pieces: Span[] = [];
  let at = span.start;
  for (let index = first; index < codes.length; index += 1) {
    const code = codes[index];
    if (!code || code.start >= end) break;
    if (code.start > at) pieces.push({ ...span, start: at, length: code.start - at });
    at = code.start + code.length;
  }
  if (at < end) pieces.push({ ...span, start: at, length: end - at });
  return pieces;
}
