/** Decides what a file is shown as: Telegram takes other types, and larger photos, as documents only. Pure. */

export type FileKind = 'photo' | 'video' | 'animation' | 'audio' | 'document';

/** A file's type, by its bytes, and its size. */
export type KnownFile = { readonly mimeType: string; readonly sizeBytes: number };

const maxPhotoBytes = 10_000_000;

const kinds: Readonly<Record<string, FileKind>> = {
  'image/jpeg': 'photo',
  'image/png': 'photo',
  'image/webp': 'photo',
  'image/gif': 'animation',
  'video/mp4': 'video',
  'audio/mpeg': 'audio',
  'audio/mp4': 'audio',
};

export function fileKind({ mimeType, sizeBytes }: KnownFile): FileKind {
  const kind = kinds[mimeType] ?? 'document';
  return kind === 'photo' && sizeBytes > maxPhotoBytes ? 'document' : kind;
}

/** Photos and videos share albums; songs and documents have their own; an animation is never in one. */
export function albumKind(file: KnownFile): string | undefined {
  const kind = fileKind(file);
  if (kind === 'animation') return undefined;
  return kind === 'video' ? 'photo' : kind;
}
