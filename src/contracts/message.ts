import type { TranscriptId } from './ids.ts';

/** A message as the agent loop sees it. */
export type AgentMessage = {
  readonly id: TranscriptId;
  readonly role: 'user' | 'assistant' | 'tool' | 'system';
  readonly parts: readonly MessagePart[];
  /** A sentence only for the model, with a person's message: when it was taken, and from whom. */
  readonly note?: string;
  /** The model that wrote it; absent on other roles. */
  readonly model?: string;
  /** Set once a request was refused because of it: the content that later requests leave out. */
  readonly unsendable?: Unsendable;
  /** It replaces the messages before it, and comes first. */
  readonly isSummary?: true;
  readonly createdAt: number;
};

/**
 * Content left out of requests; each level includes those before it: its thinking; its images, the arguments of its
 * calls and their results; its text. The store keeps everything.
 */
export type Unsendable = 'thinking' | 'content' | 'text';

/** A row of the transcript. */
export type TranscriptMessage = AgentMessage & {
  /** Its position in the session; positions are only ever added. */
  readonly position: number;
};

/** Stored as JSON `[{ "type", "data" }]`. */
export type MessagePart =
  /** `file`: the path of the file that it was read from, in the media folder; the file's own part precedes it. */
  | { readonly type: 'text'; readonly data: { readonly text: string; readonly file?: string } }
  | { readonly type: 'reasoning'; readonly data: { readonly thinking: string; readonly signature?: string } }
  | { readonly type: 'tool_call'; readonly data: ToolCallData }
  | { readonly type: 'tool_result'; readonly data: ToolResultData }
  | { readonly type: 'finish'; readonly data: FinishData }
  /** `path`: in the media folder. `pages`: of a PDF that is shown itself. */
  | {
      readonly type: 'binary';
      readonly data: { readonly path: string; readonly mime_type: string; readonly pages?: number };
    }
  | { readonly type: 'image_url'; readonly data: { readonly url: string; readonly detail?: string } };

/** `sources`: what a search model names beside its answer; shown below it, and no part of its text. */
export type FinishData = {
  readonly reason: FinishReason;
  readonly time: number;
  readonly sources?: readonly Source[];
};

/** A web page that an answer relies on. */
export type Source = { readonly url: string; readonly title?: string };

/** A tool call as the model wrote it. */
export type ToolCallData = {
  readonly id: string;
  readonly name: string;
  /** A JSON string, as the model wrote it. */
  readonly input: string;
  /** False while the model is still writing the call, or when it was cut off. */
  readonly finished: boolean;
  /** Why the arguments were not kept; `input` is then `{}`, and the call never runs. */
  readonly refusal?: string;
  /** Written by the provider for its own use. */
  readonly signature?: string;
};

export type ToolResultData = {
  readonly tool_call_id: string;
  readonly name: string;
  readonly content: string;
  readonly metadata?: string;
  readonly is_error: boolean;
};

/** The result of a call interrupted by a crash: it may or may not have had its effect. */
export const unknownOutcome = 'interrupted by a restart, outcome unknown';

/** The result of a call that never started, and never will. */
export const neverStarted = 'cancelled';

/** The result of a call that never started because of a steer. */
export const skipped = 'skipped: a new message arrived';

/** The result of a call whose wait for an outside answer expired. */
export const waitExpired = 'expired: no answer came in time';

/** Why an assistant message ended. */
export type FinishReason =
  | 'end_turn'
  | 'tool_use'
  | 'max_tokens'
  | 'canceled'
  | 'timeout'
  | 'interrupted'
  | 'permission_denied'
  | 'error';

/** Returns the visible text of a message: its text parts joined. */
export function textOf(parts: readonly MessagePart[]): string {
  return parts.flatMap((part) => (part.type === 'text' ? [part.data.text] : [])).join('');
}

/** Returns the sources that a finished answer names. */
export function sourcesOf(parts: readonly MessagePart[]): readonly Source[] {
  return parts.flatMap((part) => (part.type === 'finish' ? (part.data.sources ?? []) : []));
}

/** Whether a part is an image or an image file. */
export function isImage(part: MessagePart): boolean {
  return part.type === 'image_url' || (part.type === 'binary' && isImageType(part.data.mime_type));
}

const imageTypes = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/** Whether files of the type are images that models accept; phones also make others, such as HEIC. */
export function isImageType(mimeType: string): boolean {
  return imageTypes.has(mimeType);
}

/** Returns the tool calls of a message, in order. */
export function toolCallsOf(parts: readonly MessagePart[]): readonly ToolCallData[] {
  return parts.flatMap((part) => (part.type === 'tool_call' ? [part.data] : []));
}

/** Returns the reason of the last finish part; undefined while the message is being written. */
export function finishReasonOf(parts: readonly MessagePart[]): FinishReason | undefined {
  return parts.findLast((part) => part.type === 'finish')?.data.reason;
}

/** Says whether a result's message counts as failed; one without a result does. */
export function isErrorIn(parts: readonly MessagePart[]): boolean {
  return parts.find((part) => part.type === 'tool_result')?.data.is_error ?? true;
}
