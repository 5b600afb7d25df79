import { extractText, getDocumentProxy } from 'unpdf';
import { webProblem } from './web-problem.ts';

/** Returns the text of each page under its number. Throws ParleyError `tool_failed` if the file can't be read. */
export async function pdfToText(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const { text } = await readPdf(bytes);
  if (text.every((page) => page.trim() === ''))
    throw webProblem('The PDF has no text; its pages are probably scanned pictures.');
  return text.map((page, index) => `## Page ${index + 1}\n\n${page.trim()}`).join('\n\n');
}

async function readPdf(bytes: Uint8Array<ArrayBuffer>) {
  try {
    return await extractText(await getDocumentProxy(bytes, { verbosity: 0 }));
  } catch (error) {
    const isLocked = error instanceof Error && error.name === 'PasswordException';
    throw webProblem(
      isLocked ? 'The PDF needs a password.' : 'The PDF is damaged and cannot be read.',
      error,
    );
  }
}
