/** A file that came with a message, before it was fetched. */
export type AttachmentRef = {
  /** The platform's handle, opaque to core; the channel's `media.fetch` reads it. */
  readonly ref: string;
  /** Equal for equal files, on networks whose `ref` differs from one event to the next; otherwise `ref` is compared. */
  readonly fileId?: string;
  readonly kind: 'image' | 'audio' | 'voice' | 'video' | 'file';
  readonly name?: string;
  /** The sender's claim. Core sniffs the bytes and trusts only them. */
  readonly mimeType?: string;
  readonly sizeBytes?: number;
  /** Its sender allowed one look: it is removed with the end of the turn that shows it. */
  readonly isViewOnce?: true;
};

/** A fetched attachment: its bytes are at `path` in the media folder, which may be moved with the data folder. */
export type StoredAttachment = {
  /** Describes the message it came with, if that isn't the one it was fetched with: a quoted or an earlier one. */
  readonly of?: string;
} & (
  | {
      readonly kind: 'stored';
      readonly path: string;
      readonly mimeType: string;
      readonly sizeBytes: number;
      readonly name: string;
      /** As its network named it; absent: a program sent it. */
      readonly sentAs?: AttachmentRef['kind'];
      readonly isViewOnce?: true;
      /** Absent: the model is shown it as it is, or its name. */
      readonly reading?: FileReading;
    }
  | {
      readonly kind: 'missing';
      readonly name: string;
      readonly reason: string;
      /** It was refused by a limit; absent: fetching it failed. */
      readonly isRefused?: true;
    }
);

/** A file on disk. */
export type StoredFile = Extract<StoredAttachment, { kind: 'stored' }>;

/** Returns the paths of the file and of the smaller copy that was made of it. */
export function pathsOf({ path, reading }: StoredFile): readonly string[] {
  return reading?.kind === 'image' ? [path, reading.path] : [path];
}

/** Content read from a file for the model, once, so that no later request has to read it again. */
export type FileReading =
  /** It is being read; its message waits for that, but not for long. */
  | { readonly kind: 'pending' }
  /** Enclosed as data. `pages`: of a PDF, which is shown itself to models that take documents. */
  | { readonly kind: 'text'; readonly text: string; readonly pages?: number; readonly isCut?: true }
  /** A smaller copy in the media folder is shown in its place. */
  | { readonly kind: 'image'; readonly path: string; readonly mimeType: string }
  /** Written by a machine; empty if nothing was said. */
  | { readonly kind: 'transcript'; readonly text: string }
  | { readonly kind: 'unread'; readonly reason: string };

/** Returns what tells the file from others of its network. */
export function fileKeyOf({ fileId, ref }: AttachmentRef): string {
  return fileId ?? ref;
}

/** Says whether two lists name the same files in the same order. */
export function isSameFiles(a: readonly AttachmentRef[], b: readonly AttachmentRef[]): boolean {
  return (
    a.length === b.length && a.every((file, index) => b[index] && fileKeyOf(file) === fileKeyOf(b[index]))
  );
}
