// Converts the transcript into the provider's shape. Whatever a crash left behind, every provider accepts the result:
// roles alternate, a person speaks first, and each call is answered once, right after it.

import { basename } from 'node:path';
import { cleanText, isBlank } from '#channel-kit/clean-text.ts';
import type { TranscriptId } from '#contracts/ids.ts';
import { type AgentMessage, isImageType, type MessagePart } from '#contracts/message.ts';
import type { AssistantBlock, LlmMessage, UserBlock } from '#contracts/model.ts';
import { readInput } from './call-input.ts';
import { isCounted, type PairedCall, pairCalls } from './call-pairs.ts';
import { type FitImage, fitImage } from './fit-image.ts';
import { withStandIns } from './stand-in.ts';

/** Loads the image that a `binary` part names. `unfit`: no provider accepts it. Undefined when it no longer exists. */
export type LoadImage = (path: string) => Promise<FitImage | 'unfit' | undefined>;

/** Loads the PDF that a `binary` part names, in base64. Undefined when it no longer exists. */
export type LoadDocument = (path: string) => Promise<string | undefined>;

type Loaders = { readonly loadImage: LoadImage; readonly loadDocument?: LoadDocument };

/** Creates the `convertToLlm` of a run. The converter never throws: content it can't show is named in the text. */
export function createConverter(loaders: Loaders) {
  return async (stored: readonly AgentMessage[]): Promise<readonly LlmMessage[]> => {
    const messages = withStandIns(stored);
    // All files are loaded first, together; otherwise a long history would wait once per message.
    const files = await loadFiles(messages, loaders);
    return requestOf(messages, files);
  };
}

/** The synchronous part of the conversion. `files` maps each `binary` part to its block. */
export function requestOf(
  messages: readonly AgentMessage[],
  files: Files = new Map(),
): readonly LlmMessage[] {
  const pairs = pairCalls(messages);
  const history = new History();
  for (const [index, message] of messages.entries()) {
    if (!isCounted(message) || message.role === 'tool') continue;
    if (message.role === 'assistant') {
      const calls = pairs[index] ?? [];
      history.assistant(assistantBlocks(message, calls), message.id);
      history.user(resultBlocks(calls, files), message.id);
    } else {
      history.user(userBlocks(message, files), message.id);
    }
  }
  return history.messages();
}

type Files = ReadonlyMap<MessagePart, UserBlock>;

async function loadFiles(messages: readonly AgentMessage[], loaders: Loaders): Promise<Files> {
  const loading = messages.flatMap(({ parts }) =>
    parts.flatMap((part) =>
      part.type === 'binary' ? [{ part, text: textRead(parts, part.data.path) }] : [],
    ),
  );
  const [images, documents] = [loading.filter(isImagePart), loading.filter(isDocumentPart)];
  // No request shows more, and all images of a long conversation might not fit into memory.
  const earlier = new Set(images.slice(0, -maxImages));
  const newest = new Set(documents.slice(-maxDocuments));
  const loaded = loading.map(async (file): Promise<readonly [MessagePart, UserBlock | undefined]> => {
    const { part } = file;
    if (isDocumentPart(file))
      return [part, newest.has(file) ? await documentBlock(file, loaders.loadDocument) : undefined];
    return [part, earlier.has(file) ? earlierImage : await binaryBlock(part.data, loaders.loadImage)];
  });
  const found = await Promise.all(loaded);
  return new Map(found.flatMap(([part, block]) => (block ? [[part, block] as const] : [])));
}

type BinaryPart = Extract<MessagePart, { type: 'binary' }>;
type LoadingFile = { readonly part: BinaryPart; readonly text: string };

function isImagePart({ part }: LoadingFile): boolean {
  return isImage(part.data);
}

function isDocumentPart({ part }: LoadingFile): boolean {
  return part.data.pages !== undefined;
}

/** Returns the text that was read from the file, which its part is followed by. */
function textRead(parts: readonly MessagePart[], path: string): string {
  const read = parts.find((part) => part.type === 'text' && part.data.file === path);
  return read?.type === 'text' ? read.data.text : '';
}

/** Undefined if only its text can be shown. */
async function documentBlock(
  { part, text }: LoadingFile,
  loadDocument: LoadDocument | undefined,
): Promise<UserBlock | undefined> {
  const { path, pages = 0 } = part.data;
  const base64 = await loadDocument?.(path).catch(() => undefined);
  if (base64 === undefined) return undefined;
  return { type: 'document', name: basename(path), base64, pages, text: cleanText(text) };
}

/** The transcript ids behind each message of a request. */
const sources = new WeakMap<LlmMessage, readonly TranscriptId[]>();

/** Returns the transcript messages that a request's message shows; a result counts as part of its call's message. */
export function sourcesOf(message: LlmMessage): readonly TranscriptId[] {
  return sources.get(message) ?? [];
}

/** Extended in place: copying it for each neighbor would take quadratic time. */
type GrowingMessage = { readonly sources: TranscriptId[] } & (
  | { readonly role: 'user'; readonly content: UserBlock[] }
  | { readonly role: 'assistant'; readonly content: AssistantBlock[] }
);

/** Merges neighboring messages of the same role and omits empty ones. */
class History {
  readonly #messages: GrowingMessage[] = [];

  user(content: readonly UserBlock[], source?: TranscriptId): void {
    if (content.length === 0) return;
    const last = this.#messages.at(-1);
    if (last?.role === 'user') last.content.push(...content);
    else this.#messages.push({ role: 'user', content: [...content], sources: [] });
    if (source !== undefined) this.#messages.at(-1)?.sources.push(source);
  }

  assistant(content: readonly AssistantBlock[], source: TranscriptId): void {
    if (content.length === 0) return;
    const last = this.#messages.at(-1);
    if (last === undefined) this.user([{ type: 'text', text: '[Earlier messages are not shown.]' }]);
    if (last?.role === 'assistant') last.content.push(...content);
    else this.#messages.push({ role: 'assistant', content: [...content], sources: [] });
    this.#messages.at(-1)?.sources.push(source);
  }

  messages(): readonly LlmMessage[] {
    const room = { images: shownImages(this.#messages), length: maxImagesLength };
    const fitted = this.#messages.toReversed().map(({ sources: made, ...each }) => {
      const message = withImagesIn(each, room);
      sources.set(message, made);
      return message;
    });
    return fitted.reverse();
  }
}

/**
 * Limits on the images of one request: their number, and the total length of their base64. Anthropic accepts 32 MB in
 * all.
 */
const maxImages = 20;
const maxImagesLength = 20 * 1024 * 1024;
/** The number of documents of one request; of earlier ones, it shows the text. */
const maxDocuments = 4;
/** Older images are dropped from requests in steps of this many, because each drop invalidates the provider's cache. */
const imageStep = 10;
const earlierImage: UserBlock = { type: 'text', text: '[an earlier image, no longer shown]' };

function shownImages(messages: readonly LlmMessage[]): number {
  const blocks = messages.flatMap(({ role, content }) => (role === 'user' ? content : []));
  const images = blocks.filter((block) => block.type === 'image' || block === earlierImage).length;
  return images - Math.ceil(Math.max(0, images - maxImages) / imageStep) * imageStep;
}

/** Shows the newest images; `room` is what remains for earlier ones. */
function withImagesIn(message: LlmMessage, room: { images: number; length: number }): LlmMessage {
  const isFile = ({ type }: UserBlock) => type === 'image' || type === 'document';
  if (message.role === 'assistant' || !message.content.some(isFile)) return message;
  const content = message.content.toReversed().map((block): UserBlock => {
    if (block.type === 'document') {
      if (room.length < block.base64.length) return { type: 'text', text: block.text };
      room.length -= block.base64.length;
      return block;
    }
    if (block.type !== 'image') return block;
    const isShown = room.images > 0 && room.length >= block.base64.length;
    if (!isShown) return earlierImage;
    room.images -= 1;
    room.length -= block.base64.length;
    return block;
  });
  return { role: 'user', content: content.reverse() };
}

function assistantBlocks(message: AgentMessage, calls: readonly PairedCall[]): readonly AssistantBlock[] {
  const uses = new Map(calls.map((each) => [each.call, each]));
  const blocks = message.parts.flatMap((part): readonly AssistantBlock[] => {
    switch (part.type) {
      case 'text':
        return textBlocks(part.data.text);
      case 'reasoning': {
        const { thinking, signature } = part.data;
        // Providers accept reasoning back only with their own signature, and only for the model that wrote it.
        if (signature === undefined || message.model === undefined) return [];
        return [{ type: 'thinking', thinking, signature, model: message.model }];
      }
      case 'tool_call':
        return [uses.get(part.data)].flatMap((use) => (use ? [toolUseOf(use)] : []));
      default:
        return [];
    }
  });
  // Trailing reasoning is dropped: what followed was cut off, and an answer must not end with reasoning.
  return blocks.slice(0, blocks.findLastIndex(({ type }) => type !== 'thinking') + 1);
}

function toolUseOf({ call, wireId }: PairedCall): AssistantBlock {
  // No tool has a longer name, and OpenAI rejects longer ones.
  const name = call.name.replaceAll(/[^\w-]/g, '_').slice(0, 64) || 'unknown';
  const { signature } = call;
  const use = { type: 'tool_use', id: wireId, name, input: inputOf(call.input) } as const;
  return signature === undefined ? use : { ...use, signature };
}

/** A call that was cut off has half an object; the provider needs a complete one. */
function inputOf(json: string): object {
  try {
    const input = readInput(json);
    return typeof input === 'object' && input !== null && !Array.isArray(input) ? input : {};
  } catch {
    return {};
  }
}

function resultBlocks(calls: readonly PairedCall[], files: Files): UserBlock[] {
  const results = calls.map(
    ({ wireId, content, isError }): UserBlock => ({
      type: 'tool_result',
      toolCallId: wireId,
      content: isBlank(content) ? '(no output)' : cleanText(content),
      isError,
    }),
  );
  const images = calls.flatMap((call) => call.images.flatMap((part) => blocksOf(part, files)));
  return [...results, ...images];
}

function userBlocks(message: AgentMessage, files: Files): readonly UserBlock[] {
  const shown = new Set(
    message.parts.flatMap((part) =>
      part.type === 'binary' && files.get(part)?.type === 'document' ? [part.data.path] : [],
    ),
  );
  // The text of a document that is shown itself is part of its block.
  const isShown = (part: MessagePart) => part.type === 'text' && shown.has(part.data.file ?? '');
  const blocks = message.parts.flatMap((part) => (isShown(part) ? [] : blocksOf(part, files)));
  if (message.role === 'user')
    return message.note === undefined ? blocks : [noteBlock(cleanText(message.note)), ...blocks];
  return blocks.map((block) => (block.type === 'text' ? noteBlock(block.text) : block));
}

function noteBlock(text: string): UserBlock {
  return { type: 'text', text: `[Note from the gateway] ${text}` };
}

function blocksOf(part: MessagePart, files: Files): readonly UserBlock[] {
  switch (part.type) {
    case 'text':
      return textBlocks(part.data.text);
    case 'binary': {
      const block = files.get(part);
      return block ? [block] : [];
    }
    case 'image_url':
      return [imageUrlBlock(part.data.url)];
    default:
      return [];
  }
}

function textBlocks(text: string) {
  return isBlank(text) ? [] : [{ type: 'text' as const, text: cleanText(text) }];
}

type Binary = { readonly path: string; readonly mime_type: string };

function isImage({ mime_type }: Binary): boolean {
  return isImageType(mime_type);
}

async function binaryBlock(file: Binary, loadImage: LoadImage): Promise<UserBlock> {
  const name = cleanText(basename(file.path));
  if (!isImage(file)) return { type: 'text', text: `[attached file: ${name}, ${file.mime_type}]` };
  const image = await loadOrNothing(file.path, loadImage);
  if (image === undefined) return { type: 'text', text: `[attached image, no longer available: ${name}]` };
  if (image === 'unfit')
    return { type: 'text', text: `[attached image, too large to show or damaged: ${name}]` };
  return { type: 'image', ...image };
}

async function loadOrNothing(path: string, loadImage: LoadImage) {
  try {
    return await loadImage(path);
  } catch {
    // A missing file must not prevent an answer; the text names it instead.
    return undefined;
  }
}

/** Shows only images embedded in the URL itself: the gateway fetches nothing on the transcript's behalf. */
function imageUrlBlock(url: string): UserBlock {
  const [head] = /^data:[\w.+/-]{1,100};base64,/.exec(url) ?? [];
  if (head === undefined) return { type: 'text', text: `[linked image: ${cleanText(url.slice(0, 500))}]` };
  const image = fitImage(url.slice(head.length));
  return image === undefined
    ? { type: 'text', text: '[an image that cannot be shown]' }
    : { type: 'image', ...image };
}
