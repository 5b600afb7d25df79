import { readFile } from 'node:fs/promises';
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
  const bytes = new Uint8Array(await readFile(path));
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
