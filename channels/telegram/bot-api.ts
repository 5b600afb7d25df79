import { createReadStream } from 'node:fs';
import type { InputFile, RawApi } from 'grammy/web';
import { withBoundedJson } from '#channel-kit/bounded-fetch.ts';
import type { TelegramConfig } from './config.ts';
import type { OutgoingFile } from './outbound.ts';

/** The methods of the Bot API. Each call ends with its signal; whatever Telegram has accepted by then stays. */
export type BotApi = {
  readonly [M in Exclude<keyof RawApi, 'getMe'>]: (
    args: Parameters<RawApi[M]>[0],
    signal: AbortSignal,
  ) => ReturnType<RawApi[M]>;
} & { readonly getMe: (signal: AbortSignal) => ReturnType<RawApi['getMe']> };

export type BotClient = {
  readonly api: BotApi;
  /** Wraps a local file for an upload, which opens it; it is closed when the signal aborts, at the upload's end. */
  readonly fileOf: (file: OutgoingFile, ended: AbortSignal) => InputFile;
};

/** Longer than any of Parley's timeouts: the signals decide, not grammY. */
const neverSeconds = 3600;

/**
 * Loads grammY, at a cost that a gateway without Telegram shouldn't pay. Its "web" build is one file that uses the
 * platform's own fetch (3 MB and 7 ms; the Node build with node-fetch: 19 MB and 36 ms), and that fetch reports clearly
 * whether a connection was ever established.
 */
export async function connectBot(
  { token, apiRoot }: TelegramConfig,
  fetch: typeof globalThis.fetch,
): Promise<BotClient> {
  const { Api, InputFile } = await import('grammy/web');
  const options = { apiRoot, fetch: withBoundedJson(fetch), timeoutSeconds: neverSeconds };
  const { raw, config } = new Api(token, options);
  // A proxy's refusal may repeat the address that was called; the token in it must not be kept.
  config.use(async (call, method, payload, signal) => {
    const answer = await call(method, payload, signal);
    return answer.ok ? answer : { ...answer, description: answer.description.replaceAll(token, '[secret]') };
  });
  return {
    // grammY's types use the AbortSignal of the abort-controller package; the platform's own has all its members.
    api: raw as unknown as BotApi,
    fileOf: ({ path, name }, ended) => new InputFile(bytesOf(path, ended), name),
  };
}

/**
 * Opens the file only when it is read: an error of a stream that nothing reads yet would end the process. An upload
 * that is cut off reads no further and reports nothing.
 */
async function* bytesOf(path: string, ended: AbortSignal): AsyncGenerator<Uint8Array> {
  yield* createReadStream(path, { signal: ended });
}
