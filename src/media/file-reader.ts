/**
 * Reads people's files for the model, before their messages are taken: images that are too large are made smaller,
 * documents and text become text, voice messages are transcribed.
 */
import { open, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FileReading, StoredFile } from '#contracts/attachment.ts';
import { isImageType } from '#contracts/message.ts';
import { fitImageBytes, maxImageBytes, readImageHead } from '../agent/fit-image.ts';
import type { ChatTexts } from '../texts/chat-texts.ts';
import { cleanLabel, newDelimiter, wrapUntrusted } from '../texts/untrusted-text.ts';
import { maxImageSide } from './fit-images.ts';
import type { RunMediaJob } from './media-pool.ts';
import type { ReadProblem } from './read-problem.ts';
import { decodeText } from './sniff.ts';
import type { Transcriber } from './transcriber.ts';

export type FileReaderDeps = {
  readonly mediaDir: string;
  readonly run: RunMediaJob;
  /** Absent: voice messages are kept, but nobody hears them. */
  readonly transcriber?: Transcriber | undefined;
  readonly texts: Pick<
    ChatTexts,
    | 'fileDamaged'
    | 'fileLocked'
    | 'fileHeavy'
    | 'fileUnsupported'
    | 'fileHeic'
    | 'fileImageTooLarge'
    | 'fileNotRead'
    | 'voiceUnheard'
  >;
};

/** Reads files in the media folder. */
export interface FileReader {
  /**
   * Returns the file with what can be read of it at once; `pending` if that takes a thread or a server. `among`: how many
   * files its message has, which share the room for text.
   */
  begin(file: StoredFile, among: number): Promise<StoredFile>;
  /** Reads a pending file. Never throws: a file that can't be read costs the file. */
  finish(file: StoredFile, request: FinishRequest): Promise<StoredFile>;
  /** How long pending files may take together, ms. */
  waitMs(files: readonly StoredFile[]): number;
}

export type FinishRequest = {
  readonly among: number;
  /** Returns the name of a new file in the media folder. */
  newName(): string;
  readonly signal: AbortSignal;
};

/** Most text of one file, and of all files of a message, bytes of UTF-8. */
const maxTextBytes = 100_000;
const maxMessageTextBytes = 200_000;
/** Width and height of an image are within this much of a file. */
const headBytes = 300_000;
const readMs = 20_000;

/** Creates the reader. */
export function createFileReader(deps: FileReaderDeps): FileReader {
  return {
    begin: async (file, among) => {
      const reading = await firstReading(deps, file, among).catch(() => unread(deps.texts.fileNotRead));
      return reading === undefined ? file : { ...file, reading };
    },
    finish: (file, request) =>
      finish(deps, file, request).catch(() => ({ ...file, reading: unread(deps.texts.fileNotRead) })),
    waitMs: (files) => (files.some(isVoice) ? (deps.transcriber?.waitMs ?? 0) : 0) + readMs,
  };
}

/** Says whether it is a voice message. Some apps name neither its kind nor its type; then it has no name, either. */
function isVoice({ sentAs, mimeType, name }: StoredFile): boolean {
  return sentAs === 'voice' || (mimeType.startsWith('audio/') && name === sentAs);
}

function unread(reason: string): FileReading {
  return { kind: 'unread', reason };
}

const pending: FileReading = { kind: 'pending' };

/** Undefined for an image that is shown as it is. */
async function firstReading(
  { mediaDir, transcriber, texts }: FileReaderDeps,
  file: StoredFile,
  among: number,
): Promise<FileReading | undefined> {
  const { mimeType } = file;
  if (isVoice(file)) return transcriber === undefined ? unread(texts.voiceUnheard) : pending;
  if (isImageType(mimeType)) return (await isSmall(join(mediaDir, file.path), file)) ? undefined : pending;
  if (mimeType === 'text/plain') return readText(join(mediaDir, file.path), { file, maxBytes: room(among) });
  if (documentKind(mimeType) !== undefined) return pending;
  return unread(mimeType === 'image/heic' ? texts.fileHeic : texts.fileUnsupported);
}

function room(among: number): number {
  return Math.min(maxTextBytes, Math.floor(maxMessageTextBytes / Math.max(1, among)));
}

function documentKind(mimeType: string): 'pdf' | 'office' | undefined {
  if (mimeType === 'application/pdf') return 'pdf';
  return /^application\/(?:zip$|vnd\.oasis\.)/.test(mimeType) ? 'office' : undefined;
}

async function isSmall(path: string, { sizeBytes }: StoredFile): Promise<boolean> {
  if (sizeBytes > maxImageBytes) return false;
  const found = readImageHead(await readBeginning(path, headBytes));
  return found !== undefined && Math.max(found.width, found.height) <= maxImageSide && found.width > 0;
}

async function readBeginning(path: string, bytes: number): Promise<Buffer> {
  await using file = await open(path);
  const buffer = Buffer.alloc(bytes);
  const { bytesRead } = await file.read(buffer, 0, bytes, 0);
  return buffer.subarray(0, bytesRead);
}

type TextPlace = { readonly file: StoredFile; readonly maxBytes: number };

async function readText(path: string, { file, maxBytes }: TextPlace): Promise<FileReading> {
  const { text, isCut } = decodeText(await readBeginning(path, maxBytes + 4), maxBytes);
  return textReading(file, { text, isCut });
}

function textReading(
  { name }: StoredFile,
  { text, isCut, pages }: { readonly text: string; readonly isCut: boolean; readonly pages?: number },
): FileReading {
  const data = wrapUntrusted(text, `text of the file ${cleanLabel(name)}`, newDelimiter());
  return { kind: 'text', text: data, ...(pages !== undefined && { pages }), ...(isCut && { isCut }) };
}

async function finish(deps: FileReaderDeps, file: StoredFile, request: FinishRequest): Promise<StoredFile> {
  if (file.reading?.kind !== 'pending') return file;
  if (isVoice(file)) return { ...file, reading: await hear(deps, file, request) };
  const path = join(deps.mediaDir, file.path);
  const kind = documentKind(file.mimeType);
  if (kind === undefined) return withImage(deps, file, { ...request, path });
  const result = await deps.run({ kind, path, maxTextBytes: room(request.among) }, request.signal);
  if (result.kind !== 'text')
    return {
      ...file,
      reading: unread(reasonFor(deps, result.kind === 'problem' ? result.problem : 'damaged')),
    };
  const { mimeType = file.mimeType } = result;
  return { ...file, mimeType, reading: textReading(file, result) };
}

async function hear(
  { mediaDir, transcriber, texts }: FileReaderDeps,
  file: StoredFile,
  { signal }: FinishRequest,
): Promise<FileReading> {
  if (transcriber === undefined) return unread(texts.voiceUnheard);
  const heard = await transcriber.transcribe(
    { path: join(mediaDir, file.path), mimeType: file.mimeType },
    signal,
  );
  return heard.kind === 'heard' ? { kind: 'transcript', text: heard.text } : unread(heard.reason);
}

type ImagePlace = FinishRequest & { readonly path: string };

/** Without the library, an image that providers accept is shown as it is. */
async function withImage(
  deps: FileReaderDeps,
  { reading: _, ...file }: StoredFile,
  { path, newName, signal }: ImagePlace,
): Promise<StoredFile> {
  const result = await deps.run({ kind: 'image', source: path, maxSide: maxImageSide }, signal);
  if (result.kind === 'image') {
    const name = newName();
    const whole = join(deps.mediaDir, name);
    await writeFile(`${whole}.part`, result.bytes, { mode: 0o600 });
    await rename(`${whole}.part`, whole);
    return { ...file, reading: { kind: 'image', path: name, mimeType: result.mimeType } };
  }
  const problem = result.kind === 'problem' ? result.problem : 'damaged';
  if (problem !== 'absent') return { ...file, reading: unread(reasonFor(deps, problem)) };
  const isFit = file.sizeBytes <= maxImageBytes && fitImageBytes(await readFile(path)) !== undefined;
  return isFit ? file : { ...file, reading: unread(deps.texts.fileImageTooLarge) };
}

function reasonFor({ texts }: FileReaderDeps, problem: ReadProblem): string {
  switch (problem) {
    case 'damaged':
      return texts.fileDamaged;
    case 'locked':
      return texts.fileLocked;
    case 'heavy':
      return texts.fileHeavy;
    case 'unsupported':
    case 'absent':
      return texts.fileUnsupported;
    default:
      return problem satisfies never;
  }
}
