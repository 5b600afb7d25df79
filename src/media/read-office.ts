/**
 * Reads the text of office files: Word, Excel and PowerPoint since 2007, and OpenDocument. Nothing is unpacked to the
 * disk or held as a whole: entries are inflated piece by piece, counted by what comes out, since the sizes in the
 * archive's directory are the sender's claims.
 */
import { SaxesParser } from 'saxes';
import { type Entry, openPromise, type ZipFile } from 'yauzl';
import type { DocumentText } from './read-pdf.ts';
import { UnreadableFile } from './read-problem.ts';
import { createTextCollector, type TextCollector } from './text-collector.ts';

const maxEntries = 1_000;
/** Most bytes of XML that are read, per entry and in all. */
const maxEntryBytes = 4 * 1024 * 1024;
const maxFileBytes = 16 * 1024 * 1024;
/** A directory that claims more is refused. */
const maxRatio = 100;
/** Deeper than any office file nests; each open element takes memory. */
const maxDepth = 200;
const maxSheetRows = 200;
const maxSheetColumns = 50;

/** Returns the text of an office file. Throws `UnreadableFile`, `unsupported` for any other archive. */
export async function readOffice(path: string, maxTextBytes: number): Promise<DocumentText> {
  try {
    const archive = await openPromise(path, { lazyEntries: true, strictFileNames: false, autoClose: false });
    try {
      return await readArchive(archive, maxTextBytes);
    } finally {
      archive.close();
    }
  } catch (error) {
    if (error instanceof UnreadableFile) throw error;
    throw new UnreadableFile('damaged', { cause: error });
  }
}

type Archive = {
  readonly entries: ReadonlyMap<string, Entry>;
  /** Passes an entry's XML to the handlers, until one of them returns false. Nothing if there is no such entry. */
  read(name: string, handlers: Handlers): Promise<void>;
};

async function readArchive(zip: ZipFile, maxTextBytes: number): Promise<DocumentText> {
  const entries = await listEntries(zip);
  let room = maxFileBytes;
  const read: Archive['read'] = async (name, handlers) => {
    const entry = entries.get(name);
    if (entry === undefined || room <= 0) return;
    if (entry.uncompressedSize > maxEntryBytes && entry.uncompressedSize > maxRatio * entry.compressedSize)
      throw new UnreadableFile('heavy');
    if (entry.isEncrypted()) throw new UnreadableFile('locked');
    room -= await parseEntry(zip, entry, { handlers, maxBytes: Math.min(room, maxEntryBytes) });
  };
  const archive = { entries, read };
  const format = formats.find(({ main }) => entries.has(main));
  if (format === undefined || (format.main === 'content.xml' && !entries.has('mimetype')))
    throw new UnreadableFile('unsupported');
  const text = createTextCollector(maxTextBytes);
  await format.read(archive, text);
  const result = text.result();
  return { ...result, text: result.text.trim(), ...(format.mimeType && { mimeType: format.mimeType }) };
}

async function listEntries(zip: ZipFile): Promise<ReadonlyMap<string, Entry>> {
  if (zip.entryCount > maxEntries) throw new UnreadableFile('heavy');
  const entries = new Map<string, Entry>();
  for await (const entry of zip.eachEntry()) entries.set(entry.fileName, entry);
  return entries;
}

/** Returns false when it needs no more. */
type Handlers = {
  open?(name: string, attributes: Readonly<Record<string, string>>): boolean | undefined;
  text?(text: string): boolean | undefined;
  close?(name: string): boolean | undefined;
};

/** Returns how many bytes came out. Names are passed without their prefix. */
async function parseEntry(
  zip: ZipFile,
  entry: Entry,
  { handlers, maxBytes }: { readonly handlers: Handlers; readonly maxBytes: number },
): Promise<number> {
  const parser = new SaxesParser();
  let goesOn = true;
  const note = (answer: boolean | undefined) => {
    if (answer === false) goesOn = false;
  };
  parser.on('error', (error) => {
    throw error;
  });
  // A document type may declare entities, which office files never do.
  parser.on('doctype', () => {
    throw new UnreadableFile('damaged');
  });
  let depth = 0;
  parser.on('opentag', ({ name, attributes }) => {
    depth += 1;
    if (depth > maxDepth) throw new UnreadableFile('heavy');
    note(handlers.open?.(localName(name), attributes));
  });
  parser.on('text', (text) => note(handlers.text?.(text)));
  parser.on('closetag', ({ name }) => {
    depth -= 1;
    note(handlers.close?.(localName(name)));
  });
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const stream = await zip.openReadStreamPromise(entry);
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    parser.write(decoder.decode(chunk, { stream: true }));
    // Leaving the loop destroys the stream.
    if (!goesOn || bytes > maxBytes) break;
  }
  return bytes;
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

type Format = {
  /** The entry that tells the format. */
  readonly main: string;
  readonly mimeType?: string;
  read(archive: Archive, text: TextCollector): Promise<void>;
};

const ooxml = 'application/vnd.openxmlformats-officedocument';

const formats: readonly Format[] = [
  {
    main: 'word/document.xml',
    mimeType: `${ooxml}.wordprocessingml.document`,
    read: ({ read }, text) => read('word/document.xml', paragraphs(text)),
  },
  {
    main: 'ppt/presentation.xml',
    mimeType: `${ooxml}.presentationml.presentation`,
    read: (archive, text) => readNumbered(archive, { text, prefix: 'ppt/slides/slide', title: 'Slide' }),
  },
  { main: 'xl/workbook.xml', mimeType: `${ooxml}.spreadsheetml.sheet`, read: readWorkbook },
  { main: 'content.xml', read: ({ read }, text) => read('content.xml', openDocument(text)) },
];

/** Returns the entries `<prefix><n>.xml`, by their number. */
function numbered({ entries }: Archive, prefix: string): readonly string[] {
  const numberOf = (name: string) => Number(/(\d{1,6})\.xml$/.exec(name)?.[1]);
  const names = [...entries.keys()].filter((name) => name.startsWith(prefix) && numberOf(name) > 0);
  return names.toSorted((a, b) => numberOf(a) - numberOf(b));
}

async function readNumbered(
  archive: Archive,
  { text, prefix, title }: { readonly text: TextCollector; readonly prefix: string; readonly title: string },
): Promise<void> {
  for (const [index, name] of numbered(archive, prefix).entries()) {
    if (!text.add(`## ${title} ${index + 1}\n\n`)) return;
    await archive.read(name, paragraphs(text));
    text.add('\n');
  }
}

/** Word and PowerPoint: text is in `t`, one paragraph in `p`; deleted text has another name. */
function paragraphs(text: TextCollector): Handlers {
  let isText = false;
  return {
    open: (name) => {
      isText = name === 't';
      if (name === 'tab') return text.add('\t');
      return name === 'br' ? text.add('\n') : undefined;
    },
    text: (words) => (isText ? text.add(words) : undefined),
    close: (name) => {
      isText = false;
      if (name === 'p') return text.add('\n');
      return name === 'tc' ? text.add('\t') : undefined;
    },
  };
}

/** OpenDocument: all text is inside paragraphs and headings. */
function openDocument(text: TextCollector): Handlers {
  let depth = 0;
  return {
    open: (name) => {
      if (name === 'p' || name === 'h') depth += 1;
      if (name === 'tab') return text.add('\t');
      if (name === 'line-break') return text.add('\n');
      return name === 's' ? text.add(' ') : undefined;
    },
    text: (words) => (depth > 0 ? text.add(words) : undefined),
    close: (name) => {
      if (name === 'table-cell') return text.add('\t');
      if (name !== 'p' && name !== 'h') return undefined;
      depth -= 1;
      return text.add('\n');
    },
  };
}

async function readWorkbook(archive: Archive, text: TextCollector): Promise<void> {
  const shared: string[] = [];
  await archive.read('xl/sharedStrings.xml', sharedStrings(shared));
  for (const [index, name] of numbered(archive, 'xl/worksheets/sheet').entries()) {
    if (!text.add(`## Sheet ${index + 1}\n\n`)) return;
    await archive.read(name, sheet(text, shared));
    text.add('\n');
  }
}

/** Strings that cells refer to by their position; readings of Japanese words are left out. */
function sharedStrings(found: string[]): Handlers {
  let [isText, isReading, words] = [false, false, ''];
  return {
    open: (name) => {
      if (name === 'rPh') isReading = true;
      isText = name === 't';
      return undefined;
    },
    text: (part) => {
      if (isText && !isReading) words += part;
      return undefined;
    },
    close: (name) => {
      isText = false;
      if (name === 'rPh') isReading = false;
      if (name === 'si') [words] = ['', found.push(words)] as const;
      return undefined;
    },
  };
}

/** One line for each row, with a tab between columns; formulas are shown by their last result. */
function sheet(text: TextCollector, shared: readonly string[]): Handlers {
  let [rows, type, value] = [0, '', ''];
  let isValue = false;
  let column = 0;
  let cells: string[] = [];
  return {
    open: (name, attributes) => {
      isValue = name === 'v' || name === 't';
      if (name === 'row') cells = [];
      if (name !== 'c') return undefined;
      [type, value, column] = [attributes.t ?? '', '', columnOf(attributes.r) ?? cells.length];
      return undefined;
    },
    text: (words) => {
      if (isValue) value += words;
      return undefined;
    },
    close: (name) => {
      isValue = false;
      if (name === 'c' && column < maxSheetColumns)
        cells[column] = type === 's' ? (shared[Number(value)] ?? '') : value;
      if (name !== 'row') return undefined;
      rows += 1;
      const line = Array.from(cells, (cell = '') => cell.replaceAll(/[\t\n]+/g, ' ')).join('\t');
      return text.add(`${line}\n`) && rows < maxSheetRows;
    },
  };
}

/** Returns the column of a cell such as `C5`, from 0. */
function columnOf(cell: string | undefined): number | undefined {
  const [letters] = /^[A-Z]{1,3}/.exec(cell ?? '') ?? [];
  if (letters === undefined) return undefined;
  return [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
}
