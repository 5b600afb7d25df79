import { startAnthropicServer } from '../test/platforms/anthropic/server.ts';
import type { Reply } from '../test/platforms/anthropic/turn.ts';
import { blocksOf, type WireBody } from '../test/platforms/anthropic/wire.ts';
import { now, withDeadline } from './clock.ts';

/** The local model, in this process. */
export type Model = {
  /** Environment through which a bot finds it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Sets the model's answers; by default it repeats the last text immediately. */
  answerWith(script: Script): void;
  /** Resolves with the next request that contains the text. */
  hears(text: string, deadlineMs?: number): Promise<ModelCall>;
  close(): Promise<void>;
};

export type ModelCall = {
  /** When the request arrived, ms on the clock of `now`. */
  readonly at: number;
  /** Every text from people in the request, in order. */
  readonly texts: readonly string[];
};

type Script = (request: ModelCall) => Reply | Promise<Reply>;

export async function startModel(): Promise<Model> {
  const server = await startAnthropicServer({ journalLimit: 100 });
  const listeners = new Set<(call: ModelCall) => void>();
  let script: Script = repeatLast;
  server.script((body) => {
    // The entry was created when the body was read; the conversation was checked afterwards.
    const arrivedAtMs = server.requests.at(-1)?.arrivedAtMs;
    const at = arrivedAtMs === undefined ? now() : performance.timeOrigin + arrivedAtMs;
    const call: ModelCall = { at, texts: textsOf(body) };
    for (const listener of listeners) listener(call);
    return script(call);
  });
  return {
    environment: server.environment,
    answerWith: (next) => {
      script = next;
    },
    hears: (text, deadlineMs = 20_000) =>
      withDeadline(deadlineMs, `the model heard nothing of "${text}"`, (resolve) => {
        const listener = (call: ModelCall) => {
          if (!call.texts.some((one) => one.includes(text))) return;
          listeners.delete(listener);
          resolve(call);
        };
        listeners.add(listener);
      }),
    close: () => server.close(),
  };
}

export function repeatLast({ texts }: ModelCall): Reply {
  return { text: `Heard: ${texts.at(-1) ?? ''}` };
}

function textsOf(body: WireBody): readonly string[] {
  return body.messages.flatMap((message) =>
    message.role === 'user' ? blocksOf(message).flatMap((block) => (block.text ? [block.text] : [])) : [],
  );
}
