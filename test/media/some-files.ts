/** Files of the kinds that people send. */
import { crc32, deflateRawSync, deflateSync } from 'node:zlib';

type ZipEntry = {
  readonly name: string;
  readonly bytes: Buffer | string;
  /** As the archive claims; default: the truth. */
  readonly statedBytes?: number;
  /** Not compressed, as OpenDocument wants its first entry. */
  readonly isStored?: boolean;
};

/** Returns a complete ZIP archive. */
export function zipOf(entries: readonly ZipEntry[]): Buffer {
  const [locals, directory]: [Buffer[], Buffer[]] = [[], []];
  let at = 0;
  for (const { name, bytes: content, statedBytes, isStored = false } of entries) {
    const bytes = Buffer.from(content);
    const packed = isStored ? bytes : deflateRawSync(bytes, { level: 9 });
    const facts = Buffer.alloc(26);
    facts.writeUInt16LE(20, 0);
    facts.writeUInt16LE(isStored ? 0 : 8, 4);
    facts.writeUInt32LE(crc32(bytes), 10);
    facts.writeUInt32LE(packed.length, 14);
    facts.writeUInt32LE(statedBytes ?? bytes.length, 18);
    facts.writeUInt16LE(Buffer.byteLength(name), 22);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(at, 10);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), facts, Buffer.from(name), packed]);
    directory.push(Buffer.from('PK\x01\x02\x14\0', 'latin1'), facts, rest, Buffer.from(name));
    locals.push(local);
    at += local.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(listed.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...locals, listed, end]);
}

const xml = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>';

/** Returns a Word document with these paragraphs. */
export function docxOf(...paragraphs: readonly string[]): Buffer {
  const body = paragraphs.map((text) => `<w:p><w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`);
  return zipOf([
    { name: '[Content_Types].xml', bytes: `${xml}<Types/>` },
    { name: 'word/document.xml', bytes: `${xml}<w:document><w:body>${body.join('')}</w:body></w:document>` },
  ]);
}

/** Returns an Excel workbook whose first row holds these words, and its second their numbers. */
export function xlsxOf(...words: readonly string[]): Buffer {
  const shared = words.map((word) => `<si><t>${word}</t></si>`).join('');
  const column = (n: number) => String.fromCharCode(65 + n);
  const named = words.map((_, n) => `<c r="${column(n)}1" t="s"><v>${n}</v></c>`).join('');
  const counted = words.map((_, n) => `<c r="${column(n)}2"><v>${n + 1}</v></c>`).join('');
  const rows = `<row r="1">${named}</row><row r="2">${counted}</row>`;
  return zipOf([
    { name: 'xl/workbook.xml', bytes: `${xml}<workbook/>` },
    { name: 'xl/sharedStrings.xml', bytes: `${xml}<sst>${shared}</sst>` },
    {
      name: 'xl/worksheets/sheet1.xml',
      bytes: `${xml}<worksheet><sheetData>${rows}</sheetData></worksheet>`,
    },
  ]);
}

/** Returns a presentation with one slide for each text. */
export function pptxOf(...slides: readonly string[]): Buffer {
  return zipOf([
    { name: 'ppt/presentation.xml', bytes: `${xml}<p:presentation/>` },
    ...slides.map((text, n) => ({
      name: `ppt/slides/slide${n + 1}.xml`,
      bytes: `${xml}<p:sld><a:p><a:r><a:t>${text}</a:t></a:r></a:p></p:sld>`,
    })),
  ]);
}

/** Returns an OpenDocument text. */
export function odtOf(...paragraphs: readonly string[]): Buffer {
  const body = paragraphs.map((text) => `<text:p>${text}</text:p>`).join('');
  return zipOf([
    { name: 'mimetype', bytes: 'application/vnd.oasis.opendocument.text', isStored: true },
    { name: 'content.xml', bytes: `${xml}<office:document-content>${body}</office:document-content>` },
  ]);
}

/** Returns a PDF with one page for each text; none has any other content. */
export function pdfOf(...pages: readonly string[]): Buffer {
  const kids = pages.map((_, n) => `${4 + 2 * n} 0 R`).join(' ');
  const objects = [
    '<</Type/Catalog/Pages 2 0 R>>',
    `<</Type/Pages/Count ${pages.length}/Kids[${kids}]>>`,
    '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>',
    ...pages.flatMap((text, n) => {
      // What lies outside the page isn't text of it.
      const lines = text.match(/.{1,80}/g) ?? [];
      const shown = `BT /F1 12 Tf 14 TL 72 720 Td ${lines.map((line) => `(${line}) Tj T*`).join(' ')} ET`;
      return [
        `<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents ${5 + 2 * n} 0 R>>`,
        `<</Length ${shown.length}>>stream\n${shown}\nendstream`,
      ];
    }),
  ];
  let file = '%PDF-1.4\n%\xe2\xe3\xcf\xd3\n';
  const places = objects.map((object, n) => {
    const at = file.length;
    file += `${n + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(at).padStart(10, '0')} 00000 n \n`;
  });
  const start = file.length;
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${places.join('')}`;
  file += `trailer<</Size ${objects.length + 1}/Root 1 0 R>>\nstartxref\n${start}\n%%EOF\n`;
  return Buffer.from(file, 'latin1');
}

/** Returns a PDF with one page, whose content unpacks to these bytes, packed that often. */
export function packedPdf(content: Buffer, times = 1): Buffer {
  let bytes = content;
  for (let n = 0; n < times; n += 1) bytes = deflateSync(bytes);
  const packed = bytes.toString('latin1');
  const stream = `<</Filter[${'/FlateDecode'.repeat(times)}]/Length ${packed.length}>>stream\n${packed}\n`;
  const file = pdfOf('x').toString('latin1');
  return Buffer.from(
    file.replace(/<<\/Length \d+>>stream\n[^\n]*\n/, () => stream),
    'latin1',
  );
}

/** Returns a photo of that size, with a different color in each block of pixels. */
export async function photoOf(width: number, height: number): Promise<Buffer> {
  const { default: sharp } = await import('sharp');
  const small = Buffer.from(Array.from({ length: 40 * 30 * 3 }, (_, n) => (n * 7919) % 256));
  const image = sharp(small, { raw: { width: 40, height: 30, channels: 3 } });
  return image.resize({ width, height, fit: 'fill' }).jpeg({ quality: 80 }).toBuffer();
}

/** Returns the beginning of a voice note as Telegram sends it: a container without any sound. */
export function voiceNote(): Buffer {
  return Buffer.concat([Buffer.from('OggS\0\x02', 'latin1'), Buffer.alloc(60), Buffer.from('OpusHead')]);
}
