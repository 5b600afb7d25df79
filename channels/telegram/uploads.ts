/** Uploads files as what Telegram shows best. What it refuses as that is sent as a document: a refused call sent nothing. */
import type { InputFile } from 'grammy/web';
import type { BotApi, BotClient } from './bot-api.ts';
import { isUnfit } from './failures.ts';
import type { AlbumCall, OutgoingFile, UploadCall } from './outbound.ts';

type SentMessage = { readonly message_id: number };

export async function sendFile(
  client: BotClient,
  call: UploadCall,
  signal: AbortSignal,
): Promise<SentMessage> {
  try {
    return await uploadOnce(client, call, signal);
  } catch (error) {
    if (call.method === 'sendDocument' || !isUnfit(error)) throw error;
    return uploadOnce(client, { ...call, method: 'sendDocument' }, signal);
  }
}

function uploadOnce(client: BotClient, call: UploadCall, signal: AbortSignal): Promise<SentMessage> {
  const { api } = client;
  const { method, payload, file } = call;
  return withBytes<SentMessage>(client, [file], ([bytes]) => {
    switch (method) {
      case 'sendPhoto':
        return api.sendPhoto({ ...payload, photo: bytes }, signal);
      case 'sendVideo':
        return api.sendVideo({ ...payload, video: bytes, supports_streaming: true }, signal);
      case 'sendAnimation':
        return api.sendAnimation({ ...payload, animation: bytes }, signal);
      case 'sendAudio':
        return api.sendAudio({ ...payload, audio: bytes }, signal);
      case 'sendVoice':
        return api.sendVoice({ ...payload, voice: bytes }, signal);
      case 'sendDocument':
        return api.sendDocument({ ...payload, document: bytes }, signal);
      default:
        return method satisfies never;
    }
  });
}

type AlbumMedia = Parameters<BotApi['sendMediaGroup']>[0]['media'];

/** Sends an album, which becomes one message per file. If Telegram refuses one of them, it refuses all. */
export function sendAlbum(
  client: BotClient,
  { payload, items }: AlbumCall,
  signal: AbortSignal,
): Promise<readonly SentMessage[]> {
  const files = items.map(({ file }) => file);
  return withBytes(client, files, (uploads) => {
    const media = items.map(({ file: _, ...item }, index) => ({ ...item, media: uploads[index] }));
    // Core puts only files of one kind into an album, which grammY's types tell apart.
    return client.api.sendMediaGroup({ ...payload, media: media as unknown as AlbumMedia }, signal);
  });
}

type Uploads = readonly [InputFile, ...InputFile[]];

/** Opens the files while they are sent, one after the other, and closes what is left open. */
async function withBytes<T>(
  { fileOf }: BotClient,
  files: readonly OutgoingFile[],
  upload: (bytes: Uploads) => Promise<T>,
): Promise<T> {
  const ended = new AbortController();
  try {
    // A call has at least one file.
    return await upload(files.map((file) => fileOf(file, ended.signal)) as unknown as Uploads);
  } finally {
    ended.abort();
  }
}
