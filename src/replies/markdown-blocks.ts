import type { BlockContent, Code, DefinitionContent, List, ListItem, Root, RootContent } from 'mdast';
import type { FormattedTextWriter } from './formatted-text-writer.ts';
import { showLiterals } from './literal-text.ts';
import { writeInline } from './markdown-inline.ts';
import { writeTable } from './markdown-table.ts';

type Block = Root['children'][number] | BlockContent | DefinitionContent | RootContent;
type Level = { readonly depth: number };

const TOP: Level = { depth: 0 };

/** Writes blocks with empty lines between them. */
export function writeBlocks(writer: FormattedTextWriter, blocks: readonly Block[], level: Level = TOP): void {
  blocks.forEach((block, index) => {
    if (index > 0) writer.write('\n\n');
    writeBlock(writer, block, level);
  });
}

function writeBlock(writer: FormattedTextWriter, block: Block, level: Level): void {
  switch (block.type) {
    case 'paragraph':
      writeInline(writer, block.children);
      break;
    case 'heading':
      writer.marked({ heading: block.depth }, () => writeInline(writer, block.children));
      break;
    case 'blockquote':
      writer.marked('quote', () => writeBlocks(writer, block.children, level));
      break;
    case 'code':
      writeCode(writer, block);
      break;
    case 'list':
      writeList(writer, block, level);
      break;
    case 'table':
      writeTable(writer, block);
      break;
    case 'thematicBreak':
      writer.write('———');
      break;
    default:
      // Definitions, footnotes and raw HTML are disabled in the parser, so this is inline content.
      writeInline(writer, [block]);
  }
}

function writeList(writer: FormattedTextWriter, list: List, level: Level): void {
  const first = list.start ?? 1;
  const between = list.spread === true ? '\n\n' : '\n';
  list.children.forEach((item, index) => {
    if (index > 0) writer.write(between);
    const bullet = list.ordered === true ? `${first + index}. ` : '• ';
    writeItem(writer, item, { bullet, level });
  });
}

function writeItem(
  writer: FormattedTextWriter,
  item: ListItem,
  { bullet, level }: { readonly bullet: string; readonly level: Level },
): void {
  const task = item.checked === true ? '☑ ' : item.checked === false ? '☐ ' : undefined;
  writer.write(task ?? bullet);
  const deeper = { depth: level.depth + 1 };
  writer.indented('  '.repeat(deeper.depth), () => {
    item.children.forEach((child, index) => {
      if (index > 0) writer.write(item.spread === true && child.type !== 'list' ? '\n\n' : '\n');
      writeBlock(writer, child, deeper);
    });
  });
}

/** Uses a fence's info string as the language if it is one plain word, and otherwise keeps it as a first line. */
function writeCode(writer: FormattedTextWriter, { lang, meta, value }: Code): void {
  const info = showLiterals([lang, meta].filter((word) => typeof word === 'string' && word !== '').join(' '));
  const isLanguage = value !== '' && /^[\w+#.-]{1,32}$/.test(info);
  writer.marked({ codeBlock: isLanguage ? info : undefined }, () => {
    const code = showLiterals(value);
    writer.writeRaw(isLanguage || info === '' ? code : `${info}\n${code}`.trimEnd());
  });
}
