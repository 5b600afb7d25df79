/** The types of files, by their bytes: names and stated types are the sender's claims. SVG and HTML are text. */

/** A type that no signature, and no text, tells. */
const unknownType = 'application/octet-stream';

/** Decides the type of a file whose bytes come in chunks. */
export interface Sniffer {
  add(chunk: Uint8Array): void;
  /** Returns the type, once all bytes were added. */
  type(): string;
}

/** Most bytes that signatures look at. */
const headBytes = 1024;
/** How much is decoded at once. */
const pieceBytes = 64 * 1024;

/** Creates a sniffer. A signature decides; otherwise a file is text if all of it can be decoded, not just its beginning. */
export function createSniffer(): Sniffer {
  let head = Buffer.alloc(0);
  let text: TextCheck | undefined;
  const check = (bytes: Uint8Array) => {
    text ??= createTextCheck(head);
    for (let at = 0; at < bytes.length; at += pieceBytes) text.add(bytes.subarray(at, at + pieceBytes));
  };
  return {
    add: (chunk) => {
      const earlier = head;
      if (head.length < headBytes) head = Buffer.concat([head, chunk.subarray(0, headBytes - head.length)]);
      // The first two bytes may be a mark.
      if (head.length < 2) return;
      if (text === undefined) check(earlier);
      check(chunk);
    },
    type: () => {
      const latin = head.toString('latin1');
      const known = typeOfHead(head, latin);
      if (known !== undefined) return known;
      if (text === undefined) check(head);
      if (text?.isText()) return 'text/plain';
      // Mail programs and scanners put bytes before it, and readers accept that.
      return latin.includes('%PDF-') ? 'application/pdf' : unknownType;
    },
  };
}

/** Returns the type of a complete file. */
export function sniffType(bytes: Uint8Array): string {
  const sniffer = createSniffer();
  sniffer.add(bytes);
  return sniffer.type();
}

/** Says whether these are the first bytes of Ogg Opus, which networks take as voice messages. */
export function isOggOpus(bytes: Uint8Array): boolean {
  const head = Buffer.from(bytes.subarray(0, 36)).toString('latin1');
  return head.startsWith('OggS') && head.startsWith('OpusHead', 28);
}

/** Signatures by type: at which byte which bytes are, as Latin-1. */
const signatures: readonly (readonly [type: string, ...places: readonly (readonly [number, string])[]])[] = [
  ['image/png', [0, '\x89PNG\r\n']],
  ['image/jpeg', [0, '\xff\xd8\xff']],
  ['image/gif', [0, 'GIF87a']],
  ['image/gif', [0, 'GIF89a']],
  ['image/webp', [0, 'RIFF'], [8, 'WEBP']],
  ['image/bmp', [0, 'BM'], [6, '\0\0\0\0']],
  ['image/tiff', [0, 'II*\0']],
  ['image/tiff', [0, 'MM\0*']],
  ['audio/ogg', [0, 'OggS']],
  ['audio/wav', [0, 'RIFF'], [8, 'WAVE']],
  ['audio/flac', [0, 'fLaC']],
  ['audio/amr', [0, '#!AMR']],
  ['audio/mpeg', [0, 'ID3\x02']],
  ['audio/mpeg', [0, 'ID3\x03']],
  ['audio/mpeg', [0, 'ID3\x04']],
  ['application/pdf', [0, '%PDF-']],
  ['video/avi', [0, 'RIFF'], [8, 'AVI ']],
  ['video/webm', [0, '\x1aE\xdf\xa3']],
  ['application/rtf', [0, '{\\rtf']],
  ['application/msword', [0, '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1']],
  ['application/gzip', [0, '\x1f\x8b']],
  ['application/zip', [0, 'PK\x03\x04']],
  ['application/zip', [0, 'PK\x05\x06']],
];

/** Brands of the container that also holds photos and sound: phones send all of these. */
const brands: readonly (readonly [RegExp, string])[] = [
  [/^(?:hei[cmxs]|hev[cmx]|mif1|msf1)/, 'image/heic'],
  [/^avi[fs]/, 'image/avif'],
  [/^(?:M4[AB] |F4A )/, 'audio/mp4'],
  [/^qt {2}/, 'video/quicktime'],
  [/^3g/, 'video/3gpp'],
];

function typeOfHead(head: Buffer, latin: string): string | undefined {
  if (latin.slice(4, 8) === 'ftyp')
    return brands.find(([brand]) => brand.test(latin.slice(8, 12)))?.[1] ?? 'video/mp4';
  const known = signatures.find(([, ...places]) =>
    places.every(([at, bytes]) => latin.startsWith(bytes, at)),
  );
  if (known?.[0] === 'application/zip') return zipType(latin);
  return known ? known[0] : audioFrame(head);
}

/** OpenDocument files name their type in their first entry; others are told by their directory, at the end. */
function zipType(latin: string): string {
  const [, kind] =
    /^mimetypeapplication\/vnd\.oasis\.opendocument\.(text|spreadsheet|presentation)/.exec(latin.slice(30)) ??
    [];
  return kind === undefined ? 'application/zip' : `application/vnd.oasis.opendocument.${kind}`;
}

/** Eleven bits begin every frame of MP3 and AAC (ADTS); the layer tells them apart. */
function audioFrame(head: Buffer): string | undefined {
  const [first = 0, second = 0, third = 0xff] = head;
  if (first !== 0xff || (second & 0xe0) !== 0xe0) return undefined;
  if ((second & 0xf6) === 0xf0) return 'audio/aac';
  const [version, layer] = [second & 0x18, second & 0x06];
  const isFrame = version !== 0x08 && (layer === 2 || layer === 4) && (third & 0xf0) !== 0xf0;
  return isFrame ? 'audio/mpeg' : undefined;
}

type TextCheck = { add(chunk: Uint8Array): void; isText(): boolean };

/** UTF-16 only by its mark: any bytes are some UTF-16 text. */
function createTextCheck(beginning: Uint8Array): TextCheck {
  const encoding = utf16Of(beginning);
  return encoding === undefined ? checkBytes() : checkDecoded(encoding);
}

function utf16Of([first, second]: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  return first === 0xfe && second === 0xff ? 'utf-16be' : undefined;
}

function checkDecoded(encoding: string): TextCheck {
  const decoder = new TextDecoder(encoding, { fatal: true });
  let isText = true;
  const check = (chunk: Uint8Array | undefined) => {
    try {
      const text = chunk ? decoder.decode(chunk, { stream: true }) : decoder.decode();
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
      isText &&= !/[\0-\x08\x0e-\x1a\x1c-\x1f]/.test(text);
    } catch {
      isText = false;
    }
  };
  return {
    add: (chunk) => {
      if (isText) check(chunk);
    },
    isText: () => {
      if (isText) check(undefined);
      return isText;
    },
  };
}

/** Accepts UTF-8, and Windows-1252 if few of its bytes aren't ASCII, as in spreadsheets saved as CSV. */
function checkBytes(): TextCheck {
  const utf8 = checkDecoded('utf-8');
  const counts = { all: 0, high: 0, refused: 0 };
  return {
    add: (chunk) => {
      if (counts.refused > 0) return;
      utf8.add(chunk);
      counts.all += chunk.length;
      for (let at = 0; at < chunk.length; at += 1) {
        const byte = chunk[at] ?? 0;
        if (byte >= 0x80) counts.high += 1;
        else if (isRefused(byte)) counts.refused += 1;
      }
    },
    isText: () => {
      if (counts.all === 0 || counts.refused > 0) return false;
      return utf8.isText() || counts.high * 3 < counts.all;
    },
  };
}

function isRefused(byte: number): boolean {
  return byte < 9 || (byte > 13 && byte < 32 && byte !== 27);
}

/** Decodes a file that is text, up to `maxBytes`; throws for any other. */
export function decodeText(
  bytes: Uint8Array,
  maxBytes: number,
): { readonly text: string; readonly isCut: boolean } {
  const isCut = bytes.length > maxBytes;
  const part = bytes.subarray(0, maxBytes);
  const encoding = utf16Of(bytes);
  // The last character may be cut in two.
  if (encoding !== undefined)
    return { text: new TextDecoder(encoding, { fatal: true }).decode(part, { stream: isCut }), isCut };
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(part, { stream: isCut }), isCut };
  } catch {
    return { text: new TextDecoder('windows-1252', { fatal: true }).decode(part), isCut };
  }
}
