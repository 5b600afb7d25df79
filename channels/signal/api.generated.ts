// Made by scripts/signal-types.mjs from the swagger document of signal-cli-rest-api. Do not edit.

/** `api.SendMessageV2` */
export type SendRequest = {
  readonly base64_attachments?: readonly string[];
  readonly edit_timestamp?: number;
  readonly link_preview?: LinkPreviewRequest;
  readonly mentions?: readonly MentionRequest[];
  readonly message: string;
  readonly notify_self?: boolean;
  readonly number: string;
  readonly quote_author?: string;
  readonly quote_mentions?: readonly MentionRequest[];
  readonly quote_message?: string;
  readonly quote_timestamp?: number;
  readonly recipients: readonly string[];
  readonly sticker?: string;
  readonly text_mode?: 'normal' | 'styled';
  readonly view_once?: boolean;
};

/** `data.MessageMention` */
export type MentionRequest = {
  readonly author: string;
  readonly length: number;
  readonly start: number;
};

/** `data.LinkPreviewType` */
export type LinkPreviewRequest = {
  readonly base64_thumbnail: string;
  readonly description: string;
  readonly title: string;
  readonly url: string;
};

/** `api.SendReactionRequest` */
export type ReactionRequest = {
  readonly reaction: string;
  readonly recipient: string;
  readonly target_author: string;
  readonly timestamp: number;
};

/** `api.RemoveReactionRequest` */
export type RemoveReactionRequest = {
  readonly reaction?: string;
  readonly recipient: string;
  readonly target_author: string;
  readonly timestamp: number;
};

/** `api.RemoteDeleteRequest` */
export type RemoteDeleteRequest = {
  readonly recipient: string;
  readonly timestamp: number;
};

/** `api.Receipt` */
export type ReceiptRequest = {
  readonly receipt_type: 'read' | 'viewed';
  readonly recipient: string;
  readonly timestamp: number;
};

/** `api.TypingIndicatorRequest` */
export type TypingRequest = {
  readonly recipient: string;
};
