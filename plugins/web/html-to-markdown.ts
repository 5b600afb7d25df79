/**
 * The readable part of a page as Markdown. Readability finds articles; where it finds nothing, or only a fragment of a
 * page that isn't an article, the whole visible page is taken.
 */
import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import TurndownService from 'turndown';
import { webProblem } from './web-problem.ts';

/** A shorter article, in characters, must also be a fair share of the page's text, or it is just a fragment. */
const minArticleLength = 2500;
const minArticleShare = 0.3;

/** Browsers stop at 512 levels; pages that people read have less than 100. */
const maxDepth = 256;

const outerTags = /<\/?(?:html|head|body)\b[^<>]*>|<!doctype\b[^<>]*>/gi;
const unread = 'title, script, style, noscript, template, iframe, object, svg, canvas, link, meta, dialog';
const unseen =
  '[hidden], [aria-hidden="true"], [style*="display:none" i], [style*="display: none" i], [style*="visibility:hidden" i], [style*="visibility: hidden" i]';

/** The used part of linkedom's nodes; the compiler knows no browser's types. */
interface MarkupNode {
  readonly textContent: string | null;
  readonly children: { readonly length: number };
  readonly firstElementChild: MarkupNode | null;
  readonly nextElementSibling: MarkupNode | null;
  readonly parentElement: MarkupNode | null;
  getAttribute(name: string): string | null;
  closest(selector: string): MarkupNode | null;
  querySelector(selector: string): MarkupNode | null;
  querySelectorAll(selector: string): Iterable<MarkupNode>;
  remove(): void;
}
type MarkupPage = MarkupNode & { readonly body: MarkupNode };

/** Throws ParleyError `tool_failed` for a page without text. */
export function htmlToMarkdown(html: string, url: string): string {
  const { page, title } = openPage(html);
  if (isNestedTooDeeply(page.body)) return (page.body.textContent ?? '').trim();
  const visibleLength = lengthOf(page.body);
  const base = baseOf(page, url);
  const article = findArticle(page);
  const isArticle =
    article !== undefined &&
    (article.length >= minArticleLength || article.length >= visibleLength * minArticleShare);
  const text = isArticle
    ? toMarkdown(article.content, base)
    : toMarkdown(article === undefined ? page.body : openPage(html).page.body, base);
  if (text === '')
    throw webProblem(
      'The page has no text without its scripts, or asks for a sign-in; web_fetch runs no scripts.',
    );
  const heading = ((isArticle && article.title) || title).replace(/\s+/g, ' ').trim();
  return heading === '' || text.startsWith(`# ${heading}`) ? text : `# ${heading}\n\n${text}`;
}

function openPage(html: string): { readonly page: MarkupPage; readonly title: string } {
  // linkedom builds no html and no body around what has none, and finds nothing then.
  const isWhole = /<html\b/i.test(html) && /<body\b/i.test(html);
  const whole = isWhole ? html : `<html><body>${html.replace(outerTags, '')}</body></html>`;
  const { document }: { readonly document: MarkupPage } = parseHTML(whole);
  const title = document.querySelector('title')?.textContent ?? '';
  for (const element of document.querySelectorAll(`${unread}, ${unseen}`)) element.remove();
  return { page: document, title };
}

/** Where elements nest without end, the time of both libraries grows with the square of the depth. */
function isNestedTooDeeply(body: MarkupNode): boolean {
  let depth = 0;
  for (let node = body.firstElementChild; node !== null; ) {
    const child = node.firstElementChild;
    if (child !== null) {
      depth += 1;
      if (depth > maxDepth) return true;
      node = child;
      continue;
    }
    while (node !== null && node !== body && node.nextElementSibling === null) {
      node = node.parentElement;
      depth -= 1;
    }
    node = node === null || node === body ? null : node.nextElementSibling;
  }
  return false;
}

function lengthOf(element: MarkupNode): number {
  return (element.textContent ?? '').replace(/\s+/g, ' ').length;
}

function baseOf(page: MarkupPage, url: string): string {
  const href = page.querySelector('base')?.getAttribute('href') ?? '';
  return URL.canParse(href, url) ? new URL(href, url).href : url;
}

type Article = { readonly content: MarkupNode; readonly title: string; readonly length: number };

/** Takes the page apart; undefined if it has no article, or is too odd for the library. */
function findArticle(page: MarkupPage): Article | undefined {
  try {
    const found = new Readability<MarkupNode>(page, {
      keepClasses: true,
      serializer: (node) => node,
    }).parse();
    if (!found?.content || !found.length) return undefined;
    return { content: found.content, title: found.title ?? '', length: found.length };
  } catch {
    return undefined;
  }
}

function toMarkdown(content: MarkupNode, base: string): string {
  try {
    return createConverter(base).turndown(content).trim();
  } catch {
    // Nested more deeply than the converter's stack; the words are still there.
    return (content.textContent ?? '').trim();
  }
}

function createConverter(base: string): TurndownService {
  const converter = new TurndownService({
    headingStyle: 'atx',
    codeBlockStyle: 'fenced',
    bulletListMarker: '-',
  });
  const textOf = (content: string) => content.replace(/\s+/g, ' ').trim();
  return converter
    .addRule('link', {
      filter: 'a',
      replacement(content, node) {
        const address = absolute((node as MarkupNode).getAttribute('href'), base);
        const text = content.trim();
        return text === '' || address === undefined || /\n/.test(text) ? content : `[${text}](${address})`;
      },
    })
    .addRule('image', {
      filter: 'img',
      replacement(_content, node) {
        const alt = textOf((node as MarkupNode).getAttribute('alt') ?? '');
        const address = absolute((node as MarkupNode).getAttribute('src'), base);
        return alt === '' || address === undefined ? '' : `![${alt}](${address})`;
      },
    })
    .addRule('cell', {
      filter: ['td', 'th'],
      replacement: (content) => ` ${textOf(content).replaceAll('|', '\\|')} |`,
    })
    .addRule('row', {
      filter: 'tr',
      replacement(content, node) {
        const cells = (node as MarkupNode).children.length;
        const isFirst = (node as MarkupNode).closest('table')?.querySelector('tr') === node;
        return `\n|${content}${isFirst ? `\n|${' --- |'.repeat(cells)}` : ''}`;
      },
    })
    .addRule('rows', { filter: ['thead', 'tbody', 'tfoot'], replacement: (content) => content })
    .addRule('table', { filter: 'table', replacement: (content) => `\n\n${content.trim()}\n\n` });
}

/** Returns an address that web_fetch could read; undefined for others, such as `javascript:` and `data:`. */
function absolute(href: string | null, base: string): string | undefined {
  if (href === null || !URL.canParse(href, base)) return undefined;
  const { protocol, href: address } = new URL(href, base);
  return protocol === 'https:' || protocol === 'http:' ? address.replaceAll(')', '%29') : undefined;
}
