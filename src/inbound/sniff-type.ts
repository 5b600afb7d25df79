/** Returns the type of a file by its first bytes, whatever the sender claims. SVG and HTML are text. */
export function sniffType(head: Buffer): string {
  const latin = head.subarray(0, 16).toString('latin1');
  if (latin.startsWith('\x89PNG\r\n')) return 'image/png';
  if (latin.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (latin.startsWith('GIF87a') || latin.startsWith('GIF89a')) return 'image/gif';
  if (latin.startsWith('RIFF') && latin.slice(8, 12) === 'WEBP') return 'image/webp';
  if (latin.startsWith('%PDF-')) return 'application/pdf';
  if (latin.startsWith('OggS')) return 'audio/ogg';
  if (latin.startsWith('ID3') || latin.startsWith('\xff\xfb')) return 'audio/mpeg';
  if (latin.slice(4, 8) === 'ftyp') return 'video/mp4';
  if (latin.startsWith('PK\x03\x04')) return 'application/zip';
  return isText(head) ? 'text/plain' : 'application/octet-stream';
}

function isText(head: Buffer): boolean {
  return head.length > 0 && !head.some((byte) => byte < 9 || (byte > 13 && byte < 32 && byte !== 27));
}
