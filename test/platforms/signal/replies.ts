import type { IncomingMessage } from 'node:http';
import type { Reply } from './platform.ts';
import { ApiError } from './types.ts';

const json = 'application/json; charset=utf-8';
const plain = 'text/plain; charset=utf-8';

export function readUrl(request: IncomingMessage): {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
} {
  const url = new URL(request.url ?? '/', 'http://signal');
  return { path: url.pathname, query: Object.fromEntries(url.searchParams) };
}

/** Returns the body as JSON if it is JSON, otherwise as text. */
export function readBody(body: Buffer): unknown {
  const text = body.toString();
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text === '' ? undefined : text;
  }
}

export function refusal(error: unknown): Reply {
  if (!(error instanceof ApiError)) {
    // A fault of this server must not look like the platform's, so it names itself and fails the test.
    const what = error instanceof Error ? error.stack : String(error);
    return { status: 500, body: { error: `test server fault: ${what}` } };
  }
  const { status, isPage, isPlain, prefix, fields, message } = error;
  if (isPage) return { status, bytes: Buffer.from(message), type: 'text/plain' };
  const text = JSON.stringify({ error: message, ...fields });
  return { status, bytes: Buffer.from(prefix + text), type: isPlain ? plain : json };
}

/** Returns what a proxy in between answers. */
export function page(status: number): Reply {
  const text = `<html><head><title>${status} Bad Gateway</title></head><body>nginx/1.18.0</body></html>`;
  return { status, bytes: Buffer.from(text), type: 'text/html' };
}

/** Returns what the server makes of the messages in `reply` and the lines that signal-cli wrote after them. */
export function mixedWith(
  lines: readonly string[],
  { reply, failed }: { reply: Reply; failed: boolean },
): Reply {
  const messages: readonly unknown[] = JSON.parse(String(reply.bytes));
  const output = [...messages.map((message) => JSON.stringify(message)), ...lines];
  return failed
    ? refusal(new ApiError(400, output.join('\n')))
    : { ...reply, bytes: Buffer.from(`[${output.join(',')}]`) };
}

export function encode(reply: Reply): { readonly payload: Buffer; readonly type: string } {
  const payload = Buffer.from(reply.bytes ?? (reply.body === undefined ? '' : JSON.stringify(reply.body)));
  return { payload, type: reply.type ?? json };
}
