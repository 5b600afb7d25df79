/** A local server that writes voice messages down, or fails to, as the servers do that people run. */
import type { ServerResponse } from 'node:http';
import { Door } from '../shared/door.ts';
import { formParts } from '../shared/multipart.ts';

/** How the server answers, by the program that answers so. */
export const answers = {
  /** faster-whisper and its kin. */
  json: { status: 200, type: 'application/json', body: (text: string) => JSON.stringify({ text }) },
  vllm: {
    status: 200,
    type: 'application/json',
    body: (text: string) => JSON.stringify({ text, usage: { type: 'duration', seconds: 7 } }),
  },
  plain: { status: 200, type: 'text/plain', body: (text: string) => ` ${text}\n` },
  /** whisper.cpp calls its plain text so. */
  'plain as html': { status: 200, type: 'text/html', body: (text: string) => ` ${text}\n` },
  'error in a success': {
    status: 200,
    type: 'application/json',
    body: () => '{"object":"error","message":"Unsupported audio format","type":"BadRequestError","code":400}',
  },
  'page in a success': { status: 200, type: 'text/html', body: () => '<!doctype html><p>Sign in' },
  'nothing in a success': { status: 200, type: 'application/json', body: () => '{}' },
  'whisper.cpp refuses': {
    status: 400,
    type: 'application/json',
    body: () => '{"error":"failed to read audio data"}',
  },
  'OpenAI refuses': {
    status: 400,
    type: 'application/json',
    body: () => '{"error":{"message":"Unsupported file format aac","type":"invalid_request_error"}}',
  },
  'FastAPI refuses': {
    status: 422,
    type: 'application/json',
    body: () => '{"detail":[{"loc":["body","model"],"msg":"Field required","type":"missing"}]}',
  },
  'too large': { status: 413, type: 'text/plain', body: () => 'Request Entity Too Large' },
} as const;

export type Heard = {
  readonly path: string;
  readonly fileName: string | undefined;
  readonly fields: Readonly<Record<string, string>>;
  readonly bytes: Buffer;
  readonly key: string | undefined;
};

export type Transcribing = {
  readonly url: string;
  readonly heard: readonly Heard[];
  /** The most calls that were open at once. */
  readonly mostAtOnce: number;
  /** From now on it answers so. `away`: it hangs up; `silent`: it never answers. */
  behaves(as: keyof typeof answers | 'away' | 'silent', text?: string): void;
  /** Answers no sooner than this resolves. */
  waitsFor(gate: Promise<void>): void;
  close(): Promise<void>;
};

/** Starts the server; it understands the same in everything. */
export async function startTranscriber(): Promise<Transcribing> {
  const heard: Heard[] = [];
  let behaviour: keyof typeof answers | 'away' | 'silent' = 'json';
  let text = 'hello';
  let gate: Promise<void> = Promise.resolve();
  let [open, most] = [0, 0];
  const answer = async (response: ServerResponse) => {
    open += 1;
    most = Math.max(most, open);
    await gate;
    open -= 1;
    if (behaviour === 'away') response.destroy();
    if (behaviour === 'away' || behaviour === 'silent') return;
    const { status, type, body } = answers[behaviour];
    response.writeHead(status, { 'content-type': type }).end(body(text));
  };
  const door = new Door({
    onRequest: (request, response, body) => {
      const parts = formParts(request.headers['content-type'] ?? '', body) ?? [];
      const file = parts.find(({ fileName }) => fileName !== undefined);
      const fields = parts.flatMap(({ head, content, fileName }) =>
        fileName === undefined ? [[/name="([^"]*)"/.exec(head)?.[1] ?? '', content.toString()]] : [],
      );
      heard.push({
        path: request.url ?? '',
        fileName: file?.fileName,
        fields: Object.fromEntries(fields),
        bytes: file?.content ?? Buffer.alloc(0),
        key: request.headers.authorization,
      });
      void answer(response);
    },
  });
  await door.open();
  return {
    url: `http://127.0.0.1:${door.port}/v1`,
    heard,
    get mostAtOnce() {
      return most;
    },
    behaves: (as, words = 'hello') => {
      behaviour = as;
      text = words;
    },
    waitsFor: (promise) => {
      gate = promise;
    },
    close: () => door.shut(),
  };
}
