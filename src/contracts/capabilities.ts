import type { FormattedText } from './formatted-text.ts';

/** A network's abilities, as data. Stages check them once, where they decide. */
export type Capabilities = {
  readonly text: {
    /** Longest text of one message, in UTF-16 code units. */
    readonly maxLength: number;
    /**
     * How much of that a text uses, for networks whose native form (markup, escapes) is longer than the text.
     * Pure; absent: the text's length.
     */
    nativeLength?(text: FormattedText): number;
  };
  /** The largest file that a message may carry; absent where files can't be sent. */
  readonly media?: {
    readonly maxBytes: number;
    /** Several files in one message; absent where each is a message of its own. */
    readonly album?: AlbumLimits;
    /** Present where Ogg Opus can be a voice message; `hasCaption`: with a text. */
    readonly voice?: { readonly hasCaption: boolean };
  };
  /** Longest caption of a media message, in UTF-16 code units; absent where media carry none. */
  readonly caption?: { readonly maxLength: number };
  readonly canReact: boolean;
  /** True where a message shows one reaction of the bot, so that a new one replaces it. */
  readonly showsOneReaction?: true;
  /** Whether a message may show which earlier one it answers. */
  readonly canQuote: boolean;
  /** Whether the agent may change, or remove, a message that it has sent, for everybody and for good. */
  readonly canEdit: boolean;
  readonly canDelete: boolean;
  /** Whether a message may carry buttons; elsewhere its text ends with the command for each. */
  readonly canPress: boolean;
  /**
   * How an answer may be shown while it is written: `draft` = the network's own ephemeral preview
   * (the channel's `preview` ability), `edit` = a message that is edited, `none`.
   */
  readonly preview: { readonly dm: PreviewStyle; readonly group: PreviewStyle };
  /** Least time between two edits or drafts of one conversation. */
  readonly previewIntervalMs: { readonly dm: number; readonly group: number };
  /** How many calls a second the network allows one account in all conversations; absent: it doesn't say. */
  readonly callsPerSecond?: number;
  /**
   * True where a conversation lives in the process that holds the account (web, terminal), so only
   * that process delivers.
   */
  readonly isSessionBound: boolean;
  /**
   * How long the platform recognizes a repeated send by its key, ms. An ambiguous send is repeated for that
   * long, then looked up (the channel's `lookup` ability). 0: never, so it stays `unknown`.
   */
  readonly repeatSafeMs: number;
};

export type AlbumLimits = {
  readonly maxFiles: number;
  /** Limits all its files together; absent: only each file's own limit counts. */
  readonly maxTotalBytes?: number;
  /**
   * Only files of the same kind share a message; undefined: the file is always on its own. Pure.
   * Absent: all files may share one.
   */
  kindOf?(file: { readonly mimeType: string; readonly sizeBytes: number }): string | undefined;
};

/** How a network shows an answer while it is being written. */
export type PreviewStyle = 'draft' | 'edit' | 'none';
