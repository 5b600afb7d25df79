import type { PhrasingContent, RootContent } from 'mdast';
import type { FormattedTextWriter } from './formatted-text-writer.ts';
import { isHonestLink } from './link-safety.ts';
import { showLiterals } from './literal-text.ts';

type Inline = PhrasingContent | RootContent;

const SPOILER = /(?<![|\w])\|\|(?=[^\s|])([^|\n]*[^\s|])\|\|(?![|\w])/g;

export function writeInline(writer: FormattedTextWriter, nodes: readonly Inline[]): void {
  for (const node of nodes) writeNode(writer, node);
}

/** Returns the visible text of inline content, without its marks. */
function plainOf(nodes: readonly Inline[]): string {
  return nodes.map(plainNode).join('');
}

function writeNode(writer: FormattedTextWriter, node: Inline): void {
  switch (node.type) {
    case 'text':
      writeText(writer, node.value);
      break;
    case 'strong':
      writer.marked('bold', () => writeInline(writer, node.children));
      break;
    case 'emphasis':
      writer.marked('italic', () => writeInline(writer, node.children));
      break;
    case 'delete':
      writer.marked('strikethrough', () => writeInline(writer, node.children));
      break;
    case 'inlineCode':
      writer.marked('code', () => writer.writeRaw(showLiterals(node.value)));
      break;
    case 'break':
      writer.write('\n');
      break;
    case 'link':
      writeLink(writer, showLiterals(node.url), node.children);
      break;
    case 'image':
      writeLink(writer, showLiterals(node.url), [{ type: 'text', value: node.alt ?? '' }]);
      break;
    default:
      writer.write(plainNode(node));
  }
}

/** Writes a link, or its label and target if the target isn't what the label says or has no allowed scheme. */
function writeLink(writer: FormattedTextWriter, url: string, label: readonly Inline[]): void {
  const said = plainOf(label).trim() || url;
  const isBare = [said, `http://${said}`, `mailto:${said}`].includes(url);
  const write = () => (isBare ? writer.writeRaw(said) : writeInline(writer, label));
  if (isHonestLink(url, said)) {
    writer.marked({ link: url }, write);
    return;
  }
  write();
  if (!isBare) writer.writeRaw(` (${url})`);
}

function writeText(writer: FormattedTextWriter, text: string): void {
  let at = 0;
  for (const match of text.matchAll(SPOILER)) {
    writer.write(showLiterals(text.slice(at, match.index)));
    writer.marked('spoiler', () => writer.write(showLiterals(match[1] ?? '')));
    at = match.index + match[0].length;
  }
  writer.write(showLiterals(text.slice(at)));
}

function plainNode(node: Inline): string {
  if ('children' in node) return plainOf(node.children);
  if (node.type === 'image') return showLiterals(node.alt ?? node.url);
  if (node.type === 'break') return '\n';
  return 'value' in node ? showLiterals(node.value) : '';
}
