/** Reading people's files in threads: what comes out of them, and that none takes more than it may. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { StoredFile } from '#contracts/attachment.ts';
import { readImageHead } from '../../src/agent/fit-image.ts';
import { newMediaName } from '../../src/inbound/media.ts';
import { createFileReader, type FileReader } from '../../src/media/file-reader.ts';
import { createMediaPool, type RunMediaJob } from '../../src/media/media-pool.ts';
import { sniffType } from '../../src/media/sniff.ts';
import { removeFiles, saveFiles } from '../../src/service/message-files.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { sharedFolder } from '../support/own-folder.ts';
import { docxOf, odtOf, packedPdf, pdfOf, photoOf, pptxOf, voiceNote, xlsxOf, zipOf } from './some-files.ts';

const folder = sharedFolder();
const texts = textsFor('en');
const run = createMediaPool();
const mediaDir = () => join(folder(), 'media');

function aReader(over: { readonly run?: RunMediaJob } = {}): FileReader {
  return createFileReader({ mediaDir: mediaDir(), run, texts, ...over });
}

async function stored(bytes: Buffer, over: Partial<StoredFile> = {}): Promise<StoredFile> {
  const path = newMediaName('item');
  await mkdir(mediaDir(), { recursive: true });
  await writeFile(join(mediaDir(), path), bytes);
  return {
    ...{ kind: 'stored', path, mimeType: sniffType(bytes), sizeBytes: bytes.length, name: 'a' },
    ...over,
  };
}

async function read(file: StoredFile, { reader = aReader(), among = 1 } = {}): Promise<StoredFile> {
  const { signal } = new AbortController();
  const begun = await reader.begin(file, among);
  return reader.finish(begun, { among, newName: () => newMediaName('item'), signal });
}

const textOf = ({ reading }: StoredFile) => (reading?.kind === 'text' ? reading.text : undefined);
const problemOf = ({ reading }: StoredFile) => (reading?.kind === 'unread' ? reading.reason : reading);

describe('documents', () => {
  const ooxml = 'application/vnd.openxmlformats-officedocument';
  it.each([
    [
      'a PDF',
      pdfOf('Rent is due', 'on Monday'),
      /## Page 1\n\nRent is due\n\n## Page 2\n\non Monday/,
      'application/pdf',
    ],
    [
      'a Word document',
      docxOf('Dear Ada,', 'R&amp;D'),
      /Dear Ada,\nR&D/,
      `${ooxml}.wordprocessingml.document`,
    ],
    ['a workbook', xlsxOf('Name', 'Sum'), /## Sheet 1\n\nName\tSum\n1\t2/, `${ooxml}.spreadsheetml.sheet`],
    [
      'a presentation',
      pptxOf('Hello', 'Bye'),
      /## Slide 1\n\nHello\n\n## Slide 2\n\nBye/,
      `${ooxml}.presentationml.presentation`,
    ],
    [
      'an OpenDocument text',
      odtOf('Hallo', 'Welt'),
      /Hallo\nWelt/,
      'application/vnd.oasis.opendocument.text',
    ],
    ['a text file', Buffer.from('Grüße\n'), /Grüße/, 'text/plain'],
  ])('reads the text of %s', async (_, bytes, text, mimeType) => {
    const file = await read(await stored(bytes));
    expect(textOf(file)).toMatch(text);
    expect(file.mimeType).toBe(mimeType);
    expect(textOf(file)).toMatch(/^<<<untrusted [0-9a-f]{32} text of the file a>>>\n/);
  });

  it('counts the pages of a PDF, which is shown itself to models that read it', async () => {
    const file = await read(await stored(pdfOf('one', 'two', 'three')));
    expect(file.reading).toMatchObject({ kind: 'text', pages: 3 });
  });

  it('reads the beginning of a long text, less of it if the message has many files', async () => {
    const long = await stored(Buffer.from('0123456789'.repeat(20_000)));
    const alone = await read(long);
    expect(alone.reading).toMatchObject({ isCut: true });
    expect(textOf(alone)?.length).toBeGreaterThan(100_000);
    expect(textOf(alone)?.length).toBeLessThan(100_200);
    const oneOfTen = await read(long, { among: 10 });
    expect(textOf(oneOfTen)?.length).toBeLessThan(20_200);
  });

  it('stops reading a document once there is enough text', async () => {
    const pages = Array.from({ length: 300 }, (_, n) => `page ${n} ${'word '.repeat(200)}`);
    for (const bytes of [pdfOf(...pages), docxOf(...pages), pptxOf(...pages)])
      expect((await read(await stored(bytes))).reading).toMatchObject({ kind: 'text', isCut: true });
  });

  it.each([
    ['a cut PDF', pdfOf('x').subarray(0, 40), texts.fileDamaged],
    ['a cut document', docxOf('x'.repeat(500)).subarray(0, 200), texts.fileDamaged],
    [
      'a document that declares entities',
      zipOf([{ name: 'word/document.xml', bytes: '<!DOCTYPE x [<!ENTITY a "b">]><w:t>&a;</w:t>' }]),
      texts.fileDamaged,
    ],
    ['broken XML', zipOf([{ name: 'word/document.xml', bytes: '<w:p><w:t>x</w:p>' }]), texts.fileDamaged],
    ['another archive', zipOf([{ name: 'a.txt', bytes: 'x' }]), texts.fileUnsupported],
    [
      'a sheet that unpacks to a hundred megabytes',
      zipOf([{ name: 'word/document.xml', bytes: Buffer.alloc(100_000_000, ' ') }]),
      texts.fileHeavy,
    ],
    [
      'two thousand entries',
      zipOf(Array.from({ length: 2000 }, (_, n) => ({ name: `word/document.xml${n}`, bytes: '' }))),
      texts.fileHeavy,
    ],
    ['a PDF whose page unpacks to fifty megabytes', packedPdf(Buffer.alloc(50_000_000)), texts.fileHeavy],
    ['a PDF that is packed twice', packedPdf(Buffer.from('BT ET'), 2), texts.fileHeavy],
    ['elements half a million deep', docxOf(`</w:t>${'<a>'.repeat(500_000)}`), texts.fileHeavy],
    ['a photo in HEIC', Buffer.from('\0\0\0\x24ftypheic\0\0\0\0', 'latin1'), texts.fileHeic],
    ['a film', Buffer.from('\0\0\0\x24ftypisom\0\0\0\0', 'latin1'), texts.fileUnsupported],
    ['an empty file', Buffer.alloc(0), texts.fileUnsupported],
  ])('says why it cannot read %s', async (_, bytes, reason) => {
    expect(problemOf(await read(await stored(bytes)))).toBe(reason);
  });

  it('counts what is unpacked, whatever size an archive claims', async () => {
    const bytes = Buffer.from(`<w:document><w:t>${' '.repeat(30_000_000)}</w:t></w:document>`);
    const lying = zipOf([{ name: 'word/document.xml', bytes, statedBytes: 10 }]);
    const before = process.memoryUsage.rss();
    expect(problemOf(await read(await stored(lying)))).toBe(texts.fileDamaged);
    expect(process.memoryUsage.rss() - before).toBeLessThan(80_000_000);
  });
});

it('reads the files that programs send before it stores their message', async () => {
  const place = { mediaDir: mediaDir(), reader: aReader() };
  const files = [
    { name: 'a.txt', bytes: Buffer.from('milk') },
    { name: 'a.jpg', bytes: await photoOf(4000, 3000) },
  ];
  const [text, photo] = await saveFiles(place, 'item', files);
  expect(text).toMatchObject({ reading: { kind: 'text', text: expect.stringContaining('milk') } });
  expect(photo).toMatchObject({ reading: { kind: 'image', mimeType: 'image/jpeg' } });
  await removeFiles(
    mediaDir(),
    [text, photo].flatMap((file) => file ?? []),
  );
  if (photo?.kind === 'stored' && photo.reading?.kind === 'image')
    await expect(readFile(join(mediaDir(), photo.reading.path))).rejects.toThrow('ENOENT');
});

describe('images', () => {
  it('shows a photo of twelve megapixels as a smaller copy, and keeps the photo', async () => {
    const photo = await stored(await photoOf(4000, 3000));
    const file = await read(photo);
    expect(file.path).toBe(photo.path);
    const { reading } = file;
    if (reading?.kind !== 'image') throw new Error('no copy was made');
    const copy = await readFile(join(mediaDir(), reading.path));
    expect(readImageHead(copy)).toEqual({ mimeType: 'image/jpeg', width: 1568, height: 1176 });
    expect(copy.length).toBeLessThan(photo.sizeBytes);
  });

  it('leaves an image as it is that is small enough', async () => {
    const file = await stored(await photoOf(800, 600));
    expect(await read(file)).toEqual(file);
  });

  it('shows an image as it is where the library is missing, if a provider accepts it', async () => {
    const run: RunMediaJob = async () => ({ kind: 'problem', problem: 'absent' });
    const reader = aReader({ run });
    const wide = await stored(await photoOf(4000, 3000));
    expect(await read(wide, { reader })).toEqual(wide);
    const tooWide = await stored(await photoOf(9000, 10));
    expect(problemOf(await read(tooWide, { reader }))).toBe(texts.fileImageTooLarge);
  });

  it.each([
    ['of too many pixels, before it decodes them', hugePng(), texts.fileHeavy],
    [
      'of 20 megapixels that is decoded as a whole',
      async () => progressive(await photoOf(5000, 4000)),
      texts.fileHeavy,
    ],
    ['that is cut off', async () => (await photoOf(4000, 3000)).subarray(0, 5_000), texts.fileDamaged],
  ])('refuses an image %s', async (_, bytes, reason) => {
    expect(problemOf(await read(await stored(await bytes())))).toBe(reason);
  });
});

async function progressive(photo: Buffer): Promise<Buffer> {
  const { default: sharp } = await import('sharp');
  return sharp(photo).jpeg({ progressive: true }).toBuffer();
}

function hugePng() {
  return async () => {
    const { default: sharp } = await import('sharp');
    const bytes = await sharp({ create: { width: 9, height: 9, channels: 3, background: 'red' } })
      .png()
      .toBuffer();
    bytes.writeUInt32BE(50_000, 16);
    bytes.writeUInt32BE(50_000, 20);
    return bytes;
  };
}

describe('voice messages', () => {
  it('says that nobody writes them down, if no transcriber is set', async () => {
    const file = await stored(voiceNote(), { sentAs: 'voice' });
    expect(problemOf(await read(file))).toBe(texts.voiceUnheard);
  });
});
