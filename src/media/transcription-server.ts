import { openAsBlob } from 'node:fs';
import { FormData, fetch } from 'undici';
import { z } from 'zod';
import { type ChatTexts, fillText } from '../texts/chat-texts.ts';
import { cleanLabel } from '../texts/untrusted-text.ts';
import { spokenWords, type Transcriber, type Transcription, type VoiceFile } from './transcriber.ts';

export type TranscriptionServer = {
  /** The base address of the API, such as `http://127.0.0.1:8000/v1`, or the complete address of whisper.cpp's `/inference`. */
  readonly url: string;
  readonly model?: string | undefined;
  readonly key?: { reveal(): string } | undefined;
  /** BCP 47; absent: the server finds out. */
  readonly language?: string | undefined;
  readonly timeoutMs: number;
  readonly texts: Pick<ChatTexts, 'voiceNoAnswer' | 'voiceRefused' | 'voiceNoTranscript'>;
};

/** Names by type: servers judge a file by its name, whatever its type says. */
const extensions: Readonly<Record<string, string>> = {
  'audio/ogg': 'ogg',
  'audio/mp4': 'm4a',
  'video/mp4': 'mp4',
  'audio/aac': 'aac',
  'audio/mpeg': 'mp3',
  'audio/wav': 'wav',
  'audio/flac': 'flac',
  'audio/amr': 'amr',
  'video/webm': 'webm',
  'video/3gpp': '3gp',
};

/** Longest answer that is read, bytes. */
const maxAnswerBytes = 256 * 1024;

/** Creates a transcriber that asks a server. */
export function createServerTranscriber(server: TranscriptionServer): Transcriber {
  return {
    waitMs: server.timeoutMs,
    transcribe: async (voice, signal) => {
      try {
        const until = AbortSignal.any([signal, AbortSignal.timeout(server.timeoutMs)]);
        return await ask(server, voice, until);
      } catch {
        // Unreachable, too slow, or it closed the connection.
        return { kind: 'failed', reason: server.texts.voiceNoAnswer };
      }
    },
  };
}

async function ask(
  server: TranscriptionServer,
  voice: VoiceFile,
  signal: AbortSignal,
): Promise<Transcription> {
  const form = new FormData();
  const type = voice.mimeType;
  // The file is streamed from the disk.
  form.append('file', await openAsBlob(voice.path, { type }), `voice.${extensions[type] ?? 'ogg'}`);
  // The only format that every server has: the detailed one is refused by some, and others lose sentences in it.
  form.append('response_format', 'json');
  if (server.model !== undefined) form.append('model', server.model);
  if (server.language !== undefined) form.append('language', server.language);
  const headers = server.key && { authorization: `Bearer ${server.key.reveal()}` };
  const answer = await fetch(addressOf(server.url), {
    ...{ method: 'POST', body: form, signal, redirect: 'error' },
    ...(headers && { headers }),
  });
  const body = await readBody(answer.body);
  return judge(server, { status: answer.status, body });
}

function addressOf(url: string): string {
  const base = url.replace(/\/+$/, '');
  return /\/(?:inference|transcriptions)$/.test(base) ? base : `${base}/audio/transcriptions`;
}

async function readBody(body: AsyncIterable<Uint8Array> | null): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, maxAnswerBytes).toString();
}

type ServerAnswer = { readonly status: number; readonly body: string };

/** A success without a text is a failure: some servers report their errors so. */
function judge({ texts }: TranscriptionServer, { status, body }: ServerAnswer): Transcription {
  const content = jsonOf(body);
  if (status < 200 || status > 299) {
    const detail = cleanLabel(errorIn(content) ?? '');
    return { kind: 'failed', reason: fillText(texts.voiceRefused, { detail: detail || status }) };
  }
  const text = textIn(content, body);
  if (text !== undefined) return { kind: 'heard', text: spokenWords(text) };
  const detail = cleanLabel(errorIn(content) ?? '');
  const reason = detail === '' ? texts.voiceNoTranscript : fillText(texts.voiceRefused, { detail });
  return { kind: 'failed', reason };
}

function jsonOf(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

const transcript = z.object({ text: z.string() });

/** Accepts plain text, too, which some servers always send; a page of HTML is an error of something in between. */
function textIn(content: unknown, body: string): string | undefined {
  if (typeof content === 'string') return content;
  if (content === undefined) return /^\s*</.test(body) ? undefined : body;
  const found = transcript.safeParse(content);
  return found.success && errorIn(content) === undefined ? found.data.text : undefined;
}

const message = z.union([z.string(), z.object({ message: z.string() }).transform(({ message }) => message)]);
/** The shapes of whisper.cpp, OpenAI, vLLM and FastAPI. */
const failure = z.union([
  z.object({ error: message }).transform(({ error }) => error),
  z.object({ object: z.literal('error'), message: z.string() }).transform((fault) => fault.message),
  z.object({ detail: z.string() }).transform(({ detail }) => detail),
  z
    .object({ detail: z.array(z.object({ msg: z.string() })).min(1) })
    .transform(({ detail }) => detail.map(({ msg }) => msg).join(', ')),
]);

function errorIn(content: unknown): string | undefined {
  return failure.safeParse(content).data;
}
