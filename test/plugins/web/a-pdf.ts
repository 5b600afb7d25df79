import { once } from 'node:events';
import { createDeflate } from 'node:zlib';

/** Builds a small PDF with one line of text on each page. */
export function aPdf(lines: readonly string[]): Buffer {
  const kids = lines.map((_, index) => `${4 + index * 2} 0 R`).join(' ');
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids}] /Count ${lines.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...lines.flatMap((line, index) => {
      const content = `BT /F1 12 Tf 72 720 Td (${line}) Tj ET`;
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${5 + index * 2} 0 R >>`,
        `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
      ];
    }),
  ];
  let file = '%PDF-1.4\n';
  const offsets = objects.map((object, index) => {
    const at = file.length;
    file += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(at).padStart(10, '0')} 00000 n \n`;
  });
  const xref = file.length;
  const size = objects.length + 1;
  file += `xref\n0 ${size}\n0000000000 65535 f \n${offsets.join('')}`;
  return Buffer.from(`${file}trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${xref}\n%%EOF\n`);
}

/** Builds a PDF of a few MB whose only page unpacks to `megabytes`. */
export async function aSwellingPdf(megabytes: number): Promise<Buffer> {
  const deflate = createDeflate();
  const packed = deflate.toArray();
  const piece = Buffer.alloc(1024 * 1024, 'BT (x) Tj ET\n');
  for (let index = 0; index < megabytes; index += 1) if (!deflate.write(piece)) await once(deflate, 'drain');
  deflate.end();
  const data = Buffer.concat(await packed);
  const objects = [
    '1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj',
    '2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj',
    '3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>\nendobj',
    `4 0 obj\n<< /Length ${data.length} /Filter /FlateDecode >>\nstream\n`,
  ];
  const end = '\nendstream\nendobj\ntrailer\n<< /Root 1 0 R /Size 5 >>\n%%EOF\n';
  return Buffer.concat([Buffer.from(`%PDF-1.4\n${objects.join('\n')}`), data, Buffer.from(end)]);
}
