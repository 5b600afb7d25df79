/** Decides which files share a message, and whether a text becomes their caption. Pure. */
import type { Capabilities } from '#contracts/capabilities.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import {
  type OutboundContent,
  type OutboundFile,
  type OutboundMedia,
  withFiles,
} from '#contracts/outbound.ts';

/** A file to send. One whose size isn't known is a message of its own. */
export type FileToSend = OutboundFile & { readonly sizeBytes?: number | undefined; readonly asVoice?: true };

type Group = { readonly kind: string | undefined; readonly files: OutboundFile[]; totalBytes: number };

/**
 * Puts files into as few messages as the network allows, in the order of their first files. A voice message is always
 * one of its own.
 */
export function mediaMessages(
  files: readonly FileToSend[],
  media: Capabilities['media'],
): readonly OutboundMedia[] {
  const groups: Group[] = [];
  const voices = new Set<Group>();
  for (const { sizeBytes, asVoice, ...file } of files) {
    const isVoice = asVoice === true && media?.voice !== undefined;
    const kind = isVoice ? undefined : albumKind({ ...file, sizeBytes }, media?.album);
    const size = sizeBytes ?? 0;
    const open = groups.findLast((group) => kind !== undefined && group.kind === kind);
    if (open && hasRoom(open, size, media?.album)) {
      open.files.push(file);
      open.totalBytes += size;
      continue;
    }
    const group: Group = { kind, files: [file], totalBytes: size };
    groups.push(group);
    if (isVoice) voices.add(group);
  }
  return groups.map((group) => {
    const common = { kind: 'media', files: group.files } as const;
    return withFiles({ ...common, ...(voices.has(group) && { asVoice: true }) }, group.files);
  });
}

function albumKind(
  { sizeBytes, mimeType }: FileToSend,
  album: NonNullable<Capabilities['media']>['album'],
): string | undefined {
  if (album === undefined || sizeBytes === undefined) return undefined;
  return album.kindOf ? album.kindOf({ mimeType, sizeBytes }) : 'any';
}

function hasRoom(
  { files, totalBytes }: Group,
  sizeBytes: number,
  album: NonNullable<Capabilities['media']>['album'],
): boolean {
  const { maxFiles = 1, maxTotalBytes = Number.POSITIVE_INFINITY } = album ?? {};
  return files.length < maxFiles && totalBytes + sizeBytes <= maxTotalBytes;
}

/** Returns the texts, then the files. A single text that fits becomes the caption of the first message with files. */
export function captioned(
  texts: readonly FormattedText[],
  media: readonly OutboundMedia[],
  limits: Pick<Capabilities, 'text' | 'caption' | 'media'>,
): readonly OutboundContent[] {
  const [text, ...others] = texts;
  const [first, ...rest] = media;
  if (text && first && others.length === 0 && fitsAsCaption(text, first, limits))
    return [{ ...first, caption: text }, ...rest];
  return [...texts.map((each): OutboundContent => ({ kind: 'text', text: each })), ...media];
}

function fitsAsCaption(
  caption: FormattedText,
  { asVoice }: OutboundMedia,
  { text, caption: limit, media }: Pick<Capabilities, 'text' | 'caption' | 'media'>,
): boolean {
  if (asVoice && !media?.voice?.hasCaption) return false;
  return (text.nativeLength?.(caption) ?? caption.text.length) <= (limit?.maxLength ?? 0);
}
