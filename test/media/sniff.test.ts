import { describe, expect, it } from 'vitest';
import { createSniffer, decodeText, sniffType } from '../../src/media/sniff.ts';

const latin = (text: string) => Buffer.from(text, 'latin1');
const ftyp = (brand: string) => latin(`\0\0\0\x24ftyp${brand}\0\0\0\0`);

describe('the type of a file', () => {
  it.each([
    ['a photo of an iPhone', ftyp('heic'), 'image/heic'],
    ['an AVIF image', ftyp('avif'), 'image/avif'],
    ['a voice memo of an iPhone', ftyp('M4A '), 'audio/mp4'],
    ['a film of an iPhone', ftyp('qt  '), 'video/quicktime'],
    ['an MP4 film', ftyp('isom'), 'video/mp4'],
    ["Signal's voice note", latin('\xff\xf1\x50\x80\x02\x1f\xfc\xde'), 'audio/aac'],
    ['an MP3 file without tags', latin('\xff\xf3\x84\x64'), 'audio/mpeg'],
    ['an MP3 file with tags', latin('ID3\x04\0\0\0\0\0'), 'audio/mpeg'],
    ['a WAV file', latin('RIFF\x24\0\0\0WAVEfmt '), 'audio/wav'],
    ['a FLAC file', latin('fLaC\0\0\0\x22'), 'audio/flac'],
    ["a browser's recording", latin('\x1aE\xdf\xa3\x9fB\x86'), 'video/webm'],
    ['a voice note in Opus', latin('OggS\0\x02'), 'audio/ogg'],
    ['a PDF with bytes before it', latin('\0\0\r\n%PDF-1.4\n%\xe2\xe3'), 'application/pdf'],
    ['RTF', latin('{\\rtf1\\ansi Hello}'), 'application/rtf'],
    ['an old Word document', latin('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0'), 'application/msword'],
    [
      'an OpenDocument text',
      latin(`PK\x03\x04\x14${'\0'.repeat(21)}\x08\0\0\0mimetypeapplication/vnd.oasis.opendocument.textPK`),
      'application/vnd.oasis.opendocument.text',
    ],
    ['a ZIP archive', latin('PK\x03\x04\x14\0'), 'application/zip'],
    ['a BMP image', latin('BM\x36\0\x0c\0\0\0\0\0'), 'image/bmp'],
    ['a TIFF image', latin('II*\0\x08\0'), 'image/tiff'],
    ['text in UTF-8', Buffer.from('Grüße 😀\n'), 'text/plain'],
    ['text in UTF-16', Buffer.from('\ufeffGrüße', 'utf16le'), 'text/plain'],
    ['a table saved by Excel', latin('Name;Stra\xdfe\r\nM\xfcller;Hauptstr. 1\r\n'), 'text/plain'],
    ['text that mentions PDF', Buffer.from('# %PDF-1.7 files begin like this\n'), 'text/plain'],
    ['an SVG image', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'text/plain'],
    ['an empty file', Buffer.alloc(0), 'application/octet-stream'],
    ['text in GBK', Buffer.from('c4e3bac3cac0bde7', 'hex'), 'application/octet-stream'],
  ])('finds the type of %s by its bytes', (_, bytes, type) => {
    expect(sniffType(bytes)).toBe(type);
  });

  it('calls a file text only if all of it can be decoded', () => {
    const lines = 'a line of text\n'.repeat(20_000);
    expect(sniffType(Buffer.from(lines))).toBe('text/plain');
    expect(sniffType(Buffer.concat([Buffer.from(lines), Buffer.from([0x00, 0xff])]))).toBe(
      'application/octet-stream',
    );
  });

  it('finds the same type however a download is cut into chunks', () => {
    for (const bytes of [Buffer.from('Grüße 😀'), Buffer.from('\ufeffGrüße 😀', 'utf16le'), ftyp('heic')]) {
      const sniffer = createSniffer();
      for (const byte of bytes) sniffer.add(Buffer.from([byte]));
      expect(sniffer.type()).toBe(sniffType(bytes));
    }
  });
});

describe('the text of a file', () => {
  it.each([
    ['UTF-8', Buffer.from('\ufeffGrüße')],
    ['UTF-16', Buffer.from('\ufeffGrüße', 'utf16le')],
    ['big-endian UTF-16', Buffer.from('\ufeffGrüße', 'utf16le').swap16()],
    ['Windows-1252', latin('Gr\xfc\xdfe')],
  ])('decodes a text in %s', (_, bytes) => {
    expect(decodeText(bytes, 100)).toEqual({ text: 'Grüße', isCut: false });
  });

  it('cuts a long text between characters', () => {
    expect(decodeText(Buffer.from('äöü'), 3)).toEqual({ text: 'ä', isCut: true });
  });
});
