/**
 * Shows what a Discord client makes of a message's content, by the rules of a third-party parser
 * (discord-markdown-parser, which follows the client's own): the text and where each style is. An address that is
 * already a link on its own is plain text.
 */
import { parse } from 'discord-markdown-parser';
import type { FormattedText } from '#contracts/formatted-text.ts';
import type { PlainSpanKind, Span } from '../../../src/contracts/formatted-text.ts';

type Node = {
  readonly type: string;
  readonly content?: string | readonly Node[];
  readonly target?: string;
  readonly lang?: string;
  /** The name of an emoji. */
  readonly name?: string;
};

const plainKinds: Readonly<Record<string, PlainSpanKind>> = {
  em: 'italic',
  strong: 'bold',
  underline: 'underline',
  strikethrough: 'strikethrough',
  spoiler: 'spoiler',
  inlineCode: 'code',
  blockQuote: 'quote',
};

export function rendered(content: string): FormattedText {
  const spans: Span[] = [];
  let text = '';
  const walk = (nodes: string | readonly Node[]): void => {
    if (typeof nodes === 'string') {
      text += nodes;
      return;
    }
    for (const node of nodes) {
      const start = text.length;
      walk(node.content ?? shownAs(node));
      const length = text.length - start;
      const kind = plainKinds[node.type];
      if (kind !== undefined) spans.push({ kind, start, length });
      else if (node.type === 'link' && node.target !== text.slice(start))
        spans.push({ kind: 'link', start, length, url: node.target ?? '' });
      else if (node.type === 'codeBlock') {
        const language = node.lang ? { language: node.lang } : {};
        spans.push({ kind: 'code-block', start, length, ...language });
      }
    }
  };
  // The server trims what is sent.
  walk(parse(content.trim(), 'extended') as unknown as readonly Node[]);
  spans.sort((a, b) => a.start - b.start || b.length - a.length);
  return { text, spans };
}

/** Makes mentions, custom emoji and times, which our text must never turn into, visible as their type. */
function shownAs({ type, name = '' }: Node): string {
  if (type === 'twemoji') return name;
  return type === 'br' || type === 'newline' ? '\n' : `⟦${type}⟧`;
}
