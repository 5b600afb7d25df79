/**
 * Shows formatted text as elements. Text is only ever set as text: nothing here, or anywhere in the
 * page, turns a string into markup, and the browser is told to refuse it (Trusted Types).
 */

import { readMarkdown } from '/page/markdown.js';
import { h } from '/vendor/preact.js';

/** Spans as the gateway sent them, else the text read as Markdown. */
export function RichText({ text, spans }) {
  const formatted = spans === undefined ? readMarkdown(text) : { text, spans };
  const [blocks, inline] = partition(formatted.spans, (span) => isBlock(span));
  return h('div', { class: 'rich' }, ...blocksOf(formatted.text, blocks, inline));
}

function isBlock(span) {
  return span.kind === 'code-block' || span.kind === 'quote';
}

/** Cuts the text at its blocks; adjacent quote lines become one quote. */
function blocksOf(text, blocks, inline) {
  const nodes = [];
  let at = 0;
  for (const block of joinQuotes(text, blocks)) {
    if (block.start < at) continue;
    nodes.push(...paragraph(text, at, block.start, inline));
    const end = Math.min(block.start + block.length, text.length);
    nodes.push(blockElement(block, text, end, inline));
    at = end;
  }
  nodes.push(...paragraph(text, at, text.length, inline));
  return nodes;
}

function joinQuotes(text, blocks) {
  const joined = [];
  for (const block of [...blocks].sort((a, b) => a.start - b.start)) {
    const last = joined.at(-1);
    const gap = last === undefined ? undefined : text.slice(last.start + last.length, block.start);
    if (last?.kind === 'quote' && block.kind === 'quote' && gap === '\n') {
      joined[joined.length - 1] = { ...last, length: block.start + block.length - last.start };
    } else joined.push(block);
  }
  return joined;
}

function blockElement(block, text, end, inline) {
  if (block.kind === 'quote') return h('blockquote', null, ...inlineNodes(text, block.start, end, inline));
  const label = block.language === undefined ? null : h('span', { class: 'language' }, block.language);
  return h('pre', null, label, h('code', null, text.slice(block.start, end)));
}

/** The line breaks next to a block belong to the block's own spacing. */
function paragraph(text, start, end, inline) {
  let from = start;
  let to = end;
  while (from < to && text[from] === '\n') from += 1;
  while (to > from && text[to - 1] === '\n') to -= 1;
  return from === to ? [] : [h('p', null, ...inlineNodes(text, from, to, inline))];
}

/** Nests overlapping spans by cutting the text wherever one begins or ends. */
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

/** Only web and mail addresses become links; the address itself is shown on hover. */
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
