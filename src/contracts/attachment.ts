/** A file that came with a message, before it was fetched. */
export type AttachmentRef = {
  /** The platform's handle, opaque to core; the channel's `media.fetch` reads it. */
  readonly ref: string;
  readonly kind: 'image' | 'audio' | 'voice' | 'video' | 'file';
  readonly name?: string;
  /** The sender's claim. Core sniffs the bytes and trusts only them. */
  readonly mimeType?: string;
  readonly sizeBytes?: number;
};

/** A fetched attachment: its bytes are at `path` in the media folder, which may be moved with the data folder. */
export type StoredAttachment =
  | {
      readonly kind: 'stored';
      readonly path: string;
      readonly mimeType: string;
      readonly sizeBytes: number;
      readonly name: string;
    }
  | { readonly kind: 'missing'; readonly name: string; readonly reason: string };
