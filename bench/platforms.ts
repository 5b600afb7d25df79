import { type AnthropicServer, startAnthropicServer } from '../test/platforms/anthropic/server.ts';
import type { Reply } from '../test/platforms/anthropic/turn.ts';
import { blocksOf, type WireBody } from '../test/platforms/anthropic/wire.ts';
import { startTelegramServer, type TelegramServer } from '../test/platforms/telegram/server.ts';
import type { Call } from '../test/platforms/telegram/types.ts';

/** Both platforms in this process, on one clock. */
export type Platforms = {
  readonly telegram: TelegramServer;
  readonly anthropic: AnthropicServer;
  /** What a bot needs to find them. */
  readonly environment: Readonly<Record<string, string>>;
  /** Sends as a person whose private chat has this number; returns when, ms. */
  say(chat: number, text: string): number;
  /** Decides what the model answers; default: it repeats the last text, at once. */
  answerWith(script: (request: ModelCall) => Reply | Promise<Reply>): void;
  /** The next request to the model that holds the text. */
  modelHears(text: string, deadlineMs?: number): Promise<ModelCall>;
  /** The next message to the chat that holds the text, and when it arrived. */
  botSays(chat: number, text: string, deadlineMs?: number): Promise<Call>;
  /** Resolves when the bot waits in a long poll with nothing left for it. */
  untilPolled(deadlineMs?: number): Promise<void>;
  close(): Promise<void>;
};

export type ModelCall = {
  /** When the request had arrived, ms on the clock of `now`. */
  readonly at: number;
  readonly texts: readonly string[];
  readonly body: WireBody;
};

/** Milliseconds since the epoch with their fraction. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}

const apiKey = 'sk-ant-bench-0001';

export async function startPlatforms(): Promise<Platforms> {
  const telegram = await startTelegramServer({ now });
  const anthropic = await startAnthropicServer({ keys: [apiKey] });
  const listeners = new Set<(call: ModelCall) => void>();
  let script: (request: ModelCall) => Reply | Promise<Reply> = repeatLast;
  anthropic.script((body) => {
    // The entry was made when the body was read; the conversation was checked after that.
    const at = performance.timeOrigin + (anthropic.requests.at(-1)?.arrivedAtMs ?? performance.now());
    const call: ModelCall = { at, body, texts: textsOf(body) };
    for (const listener of listeners) listener(call);
    return script(call);
  });
  return {
    telegram,
    anthropic,
    environment: {
      TELEGRAM_BOT_TOKEN: telegram.token,
      TELEGRAM_API_ROOT: telegram.apiRoot,
      ANTHROPIC_API_KEY: apiKey,
      ANTHROPIC_BASE_URL: anthropic.url,
    },
    say: (chat, text) => {
      const at = now();
      telegram.userSends({ from: { id: chat, is_bot: false, first_name: `Person ${chat}` }, text });
      return at;
    },
    answerWith: (next) => {
      script = next;
    },
    modelHears: (text, deadlineMs = 20_000) =>
      withDeadline(deadlineMs, `the model heard nothing of "${text}"`, (resolve) => {
        const listener = (call: ModelCall) => {
          if (!call.texts.some((one) => one.includes(text))) return;
          listeners.delete(listener);
          resolve(call);
        };
        listeners.add(listener);
      }),
    botSays: (chat, text, deadlineMs = 20_000) => {
      let seen = telegram.calls.length;
      return telegram.waitFor(() => {
        for (; seen < telegram.calls.length; seen++) {
          const call = telegram.calls[seen];
          // A long poll stays open; every other call is answered in a moment.
          if (call?.status === 0 && call.method !== 'getUpdates') return undefined;
          if (call && isMessage(call, chat, text)) return call;
        }
        return undefined;
      }, deadlineMs);
    },
    untilPolled: async (deadlineMs = 20_000) => {
      await telegram.waitFor(
        () => telegram.updates.isPolled && telegram.updates.pending.length === 0,
        deadlineMs,
      );
    },
    close: async () => {
      await telegram.close();
      await anthropic.close();
    },
  };
}

export function isMessage(call: Call, chat: number, text: string): boolean {
  return (
    call.method === 'sendMessage' &&
    Number(call.params.chat_id) === chat &&
    String(call.params.text).includes(text)
  );
}

function repeatLast({ texts }: ModelCall): Reply {
  return { text: `Heard: ${texts.at(-1) ?? ''}` };
}

/** Every text that people have in the request, in order. */
function textsOf(body: WireBody): readonly string[] {
  return body.messages.flatMap((message) =>
    message.role === 'user' ? blocksOf(message).flatMap((block) => (block.text ? [block.text] : [])) : [],
  );
}

export function withDeadline<T>(
  ms: number,
  problem: string,
  begin: (resolve: (value: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${problem} within ${ms} ms`)), ms);
    begin((value) => {
      clearTimeout(timer);
      resolve(value);
    });
  });
}
