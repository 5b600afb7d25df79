import type { AttachmentRef } from '#contracts/attachment.ts';

/** A picture or a file that a message shows. */
export type MediaLink = {
  readonly url: string;
  readonly kind: AttachmentRef['kind'];
  /** The id of the uploaded file, if it is one. */
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly mimeType?: string | undefined;
  readonly sizeBytes?: number | undefined;
};

/** Content other than written words: lines of text about it, and its pictures and files. */
export type Description = {
  readonly lines: readonly string[];
  readonly media: readonly MediaLink[];
};

export function joined(all: readonly Description[]): Description {
  return { lines: all.flatMap(({ lines }) => lines), media: all.flatMap(({ media }) => media) };
}
