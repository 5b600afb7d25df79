/** Turns a page's bytes into text for a model: HTML and PDF as Markdown, other text as it is. */
import { webProblem } from './web-problem.ts';

export type PageSource = {
  readonly url: string;
  /** Empty if the server didn't say. */
  readonly contentType: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
};

/** Throws ParleyError `tool_failed` with a sentence for the model. */
export async function pageText({ url, contentType, bytes }: PageSource): Promise<string> {
  switch (kindOf(contentType, bytes)) {
    case 'html': {
      const { htmlToMarkdown } = await import('./html-to-markdown.ts');
      return htmlToMarkdown(decode(bytes, contentType, { isMarkup: true }), url);
    }
    case 'pdf': {
      const { pdfToText } = await import('./pdf-to-text.ts');
      return pdfToText(bytes);
    }
    case 'text':
      return decode(bytes, contentType, { isMarkup: false });
    case 'binary':
      throw webProblem('web_fetch reads web pages, PDF and text; this is a file of another kind.');
  }
}

const sniffedBytes = 1024;

/** The content decides where a server sends something else than it says; HTML shown as source is text. */
function kindOf(contentType: string, bytes: Uint8Array): 'html' | 'pdf' | 'text' | 'binary' {
  const head = new TextDecoder('latin1').decode(bytes.subarray(0, sniffedBytes)).trimStart();
  const type = contentType.toLowerCase().split(';')[0]?.trim();
  if (head.startsWith('%PDF-')) return 'pdf';
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html';
  if (
    (type === '' || type === 'application/octet-stream') &&
    /^<(?:!doctype html|html|head|body)\b/i.test(head)
  )
    return 'html';
  const hasWideBom = /^(?:\xff\xfe|\xfe\xff)/.test(head);
  return head.includes('\0') && !hasWideBom ? 'binary' : 'text';
}

/** Decodes by the byte order mark, the header or the page itself, in this order; otherwise as UTF-8. */
function decode(
  bytes: Uint8Array<ArrayBuffer>,
  contentType: string,
  { isMarkup }: { readonly isMarkup: boolean },
): string {
  const head = new TextDecoder('latin1').decode(bytes.subarray(0, sniffedBytes));
  const [, inHeader] = /;\s*charset\s*=\s*["']?([^\s"';]+)/i.exec(contentType) ?? [];
  const label = byteOrderMark(head) ?? inHeader ?? (isMarkup ? charsetIn(head) : undefined) ?? 'utf-8';
  try {
    return new TextDecoder(label).decode(bytes);
  } catch {
    // An unknown label, such as a misspelt one.
    return new TextDecoder().decode(bytes);
  }
}

function byteOrderMark(head: string): string | undefined {
  if (head.startsWith('\xef\xbb\xbf')) return 'utf-8';
  if (head.startsWith('\xff\xfe')) return 'utf-16le';
  return head.startsWith('\xfe\xff') ? 'utf-16be' : undefined;
}

/** Finds `<meta charset="…">`, `<meta … content="text/html; charset=…">` or `<?xml … encoding="…">`. */
function charsetIn(head: string): string | undefined {
  const [, found] =
    /<(?:meta\b[^>]*?\bcharset|\?xml\b[^>]*?\bencoding)\s*=\s*["']?\s*([\w:.-]+)/i.exec(head) ?? [];
  // Text that could be read up to here isn't UTF-16, whatever it claims to be.
  return found === undefined || /^utf-?16/i.test(found) ? undefined : found;
}
