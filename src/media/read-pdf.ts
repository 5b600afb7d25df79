import { readFile } from 'node:fs/promises';
import { constants, inflateSync } from 'node:zlib';
import { getDocumentProxy } from 'unpdf';
import { UnreadableFile } from './read-problem.ts';
import { createTextCollector } from './text-collector.ts';

/** The text of a document. */
export type DocumentText = {
  readonly text: string;
  readonly isCut: boolean;
  /** As its content says, where its first bytes don't. */
  readonly mimeType?: string;
  /** The number of its pages, of a PDF. */
  readonly pages?: number;
};

/** Reads the text page by page until there is enough of it. */
export async function readPdf(path: string, maxTextBytes: number): Promise<DocumentText> {
  const file = await readFile(path);
  refuseBombs(file);
  const bytes = new Uint8Array(file.buffer, file.byteOffset, file.byteLength);
  try {
    // Images aren't decoded, since only the text is read.
    const pdf = await getDocumentProxy(bytes, { verbosity: 0, maxImageSize: 1 });
    const pages = pdf.numPages;
    const text = createTextCollector(maxTextBytes);
    for (let number = 1; number <= pages && !text.isFull; number += 1) {
      const page = await pdf.getPage(number);
      const { items } = await page.getTextContent();
      const words = items
        .map((item) => ('str' in item ? `${item.str}${item.hasEOL ? '\n' : ''}` : ''))
        .join('');
      if (words.trim() !== '') text.add(`## Page ${number}\n\n${words.trim()}\n\n`);
      page.cleanup();
    }
    return { ...text.result(), pages };
  } catch (error) {
    const isLocked = error instanceof Error && error.name === 'PasswordException';
    throw new UnreadableFile(isLocked ? 'locked' : 'damaged', { cause: error });
  }
}

/** Most bytes that one of its streams may unpack to; a page of text has a few kilobytes. */
const maxStreamBytes = 8 * 1024 * 1024;
/** How far before a stream its dictionary is looked for. */
const dictionaryBytes = 1_000;

/**
 * Throws `heavy` for a file with a stream that unpacks to more than pages need, or that is packed more than once: the
 * reader would hold all of it. Images aren't unpacked, so they may be as large as they are.
 */
function refuseBombs(file: Buffer): void {
  for (let at = file.indexOf('stream'); at !== -1; at = file.indexOf('stream', at + 6)) {
    const before = file.toString('latin1', Math.max(0, at - dictionaryBytes), at);
    const dictionary = before.slice(before.lastIndexOf('obj') + 3);
    const filters = dictionary.match(/\/(?:FlateDecode|Fl|LZWDecode|LZW)\b/g) ?? [];
    if (before.endsWith('end') || filters.length === 0 || /\/Subtype\s*\/Image\b/.test(dictionary)) continue;
    const end = file.indexOf('endstream', at);
    if (filters.length > 1) throw new UnreadableFile('heavy');
    const start = at + (file[at + 6] === 0x0d ? 8 : 7);
    if (isTooLong(file.subarray(start, end === -1 ? file.length : end))) throw new UnreadableFile('heavy');
  }
}

function isTooLong(packed: Buffer): boolean {
  try {
    inflateSync(packed, { maxOutputLength: maxStreamBytes, finishFlush: constants.Z_SYNC_FLUSH });
    return false;
  } catch (error) {
    // Anything else is left to the reader, which says whether the file is damaged.
    return error instanceof RangeError;
  }
}
