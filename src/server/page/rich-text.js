/**
 * Shows formatted text as elements. Text is only ever set as text: nothing in this file, or anywhere in the
 * page, turns a string into markup, and Trusted Types make the browser refuse to.
 */

import { CopyButton } from '/page/copy-button.js';
import { readMarkdown } from '/page/markdown.js';
import { readBlocks, readTable } from '/page/text-blocks.js';
import { h } from '/vendor/preact.js';

/** Shows the text with the gateway's spans; without spans it is parsed as Markdown. */
export function RichText({ text, spans }) {
  const formatted = spans === undefined ? readMarkdown(text) : { text, spans };
  const [marked, inline] = partition(formatted.spans, (span) => isBlock(span));
  const blocks = marked.map((span) => (span.level === undefined ? span : withCode(span, inline)));
  return h('div', { class: 'rich' }, ...blocksOf(formatted.text, blocks, inline));
}

function isBlock(span) {
  return span.kind === 'code-block' || span.kind === 'quote' || span.level !== undefined;
}

/** Splits the text at its blocks; adjacent quote lines become one quote, and the pieces of a heading one heading. */
function blocksOf(text, blocks, inline) {
  const nodes = [];
  let at = 0;
  for (const block of joinPieces(text, blocks)) {
    if (block.start < at) continue;
    nodes.push(...between(text, at, block.start, inline));
    const end = Math.min(block.start + block.length, text.length);
    nodes.push(blockElement(block, text, end, inline));
    at = block.table === undefined ? end : endOfLines(text, end, block.table.notes);
  }
  nodes.push(...between(text, at, text.length, inline));
  return nodes;
}

/** Code isn't bold, so the span of a heading ends before it. */
function withCode(heading, inline) {
  const end = heading.start + heading.length;
  const code = inline.filter(({ kind }) => kind === 'code');
  const before = code.find(({ start, length }) => start + length === heading.start);
  const after = code.find(({ start }) => start === end);
  const start = before?.start ?? heading.start;
  return { ...heading, start, length: (after === undefined ? end : after.start + after.length) - start };
}

/** A table shows its links itself, so the lines that list their addresses are left out. */
function endOfLines(text, start, count) {
  let end = start;
  for (let line = 0; line < count; line += 1) {
    const next = text.indexOf('\n', end + 1);
    end = next === -1 ? text.length : next;
  }
  return end;
}

function joinPieces(text, blocks) {
  const joined = [];
  for (const block of [...blocks].sort((a, b) => a.start - b.start)) {
    const last = joined.at(-1);
    const gap = last === undefined ? undefined : text.slice(last.start + last.length, block.start);
    const isQuote = last?.kind === 'quote' && block.kind === 'quote' && gap === '\n';
    // Code splits the bold text of a heading.
    const isHeading = last?.level !== undefined && last.level === block.level && !gap?.includes('\n');
    if (isQuote || isHeading) {
      joined[joined.length - 1] = { ...last, length: block.start + block.length - last.start };
    } else joined.push(block);
  }
  return joined;
}

function blockElement(block, text, end, inline) {
  if (block.kind === 'quote') return h('blockquote', null, ...inlineNodes(text, block.start, end, inline));
  // The page's own heading is the only one of the first level.
  if (block.level !== undefined)
    return h(`h${Math.min(block.level + 1, 6)}`, null, ...inlineNodes(text, block.start, end, inline));
  if (block.table !== undefined) return tableElement(block.table.rows, block.table.align);
  const code = text.slice(block.start, end);
  const rows = block.language === undefined ? readTable(code) : undefined;
  if (rows !== undefined)
    return tableElement(rows.map((row) => row.map((cell) => ({ text: cell, spans: [] }))));
  const label = block.language === undefined ? null : h('span', { class: 'language' }, block.language);
  // Focusable, so that it can be scrolled with the keyboard.
  const pre = h('pre', { tabindex: 0 }, label, h('code', null, code));
  return h('div', { class: 'code-block' }, pre, h(CopyButton, { text: code, what: 'code' }));
}

function tableElement([head, ...rows], align = []) {
  const cells = (tag, row) =>
    row.map(({ text, spans }, column) =>
      h(tag, cellAttributes(align[column]), ...inlineNodes(text, 0, text.length, spans)),
    );
  const body = rows.map((row) => h('tr', null, ...cells('td', row)));
  const table = h(
    'table',
    null,
    h('thead', null, h('tr', null, ...cells('th', head))),
    h('tbody', null, ...body),
  );
  return h('div', { class: 'table', tabindex: 0 }, table);
}

/** Classes, because the page allows no style attributes. */
function cellAttributes(align) {
  return align === 'right' || align === 'center' ? { class: align } : null;
}

/** Returns the paragraphs and lists between blocks. Line breaks next to a block are part of its spacing. */
function between(text, start, end, inline) {
  return readBlocks(text, start, end).map((block) =>
    block.kind === 'list'
      ? listElement(text, block, inline)
      : h('p', null, ...inlineNodes(text, block.start, block.end, inline)),
  );
}

function listElement(text, { isOrdered, first, items }, inline) {
  const entries = items.map(({ lines, check, lists }) => {
    const own = lines.flatMap(({ start, end }, index) => [
      ...(index === 0 ? [] : [h('br')]),
      ...inlineNodes(text, start, end, inline),
    ]);
    const mark = check === undefined ? null : h('span', { class: 'check' }, check ? '☑ ' : '☐ ');
    const inner = lists.map((list) => listElement(text, list, inline));
    return h('li', check === undefined ? null : { class: 'task' }, mark, ...own, ...inner);
  });
  return isOrdered ? h('ol', { start: first }, ...entries) : h('ul', null, ...entries);
}

/** Nests overlapping spans by splitting the text wherever one begins or ends. */
function inlineNodes(text, from, to, spans) {
  const inside = spans
    .map((span) => ({
      ...span,
      end: Math.min(span.start + span.length, to),
      start: Math.max(span.start, from),
    }))
    .filter((span) => span.start < span.end);
  const cuts = [...new Set([from, to, ...inside.flatMap((span) => [span.start, span.end])])].sort(
    (a, b) => a - b,
  );
  return cuts.slice(0, -1).map((start, i) => {
    const end = cuts[i + 1];
    const around = inside.filter((span) => span.start <= start && span.end >= end);
    return around.reduce((node, span) => inlineElement(span, node), text.slice(start, end));
  });
}

const tags = {
  bold: 'strong',
  italic: 'em',
  underline: 'u',
  strikethrough: 's',
  code: 'code',
};

function inlineElement(span, child) {
  if (span.kind === 'link') return linkElement(span.url, child);
  if (span.kind === 'spoiler')
    return h('details', { class: 'spoiler' }, h('summary', null, 'spoiler'), child);
  return h(tags[span.kind] ?? 'span', null, child);
}

/** Returns a link for web and mail addresses, which shows its address on hover, and plain text for others. */
function linkElement(url, child) {
  if (!isSafeUrl(url)) return h('span', null, child);
  return h('a', { href: url, title: url, target: '_blank', rel: 'noopener noreferrer nofollow' }, child);
}

export function isSafeUrl(url) {
  if (!URL.canParse(url)) return false;
  return ['http:', 'https:', 'mailto:'].includes(new URL(url).protocol);
}

function partition(items, isFirst) {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}
