import { z } from 'zod';
import { parseJson } from '#channel-kit/parse-json.ts';
import { longestJson, OversizedJson } from '#channel-kit/read-json.ts';

/** Something that arrived through the webhook, the socket or a poll. */
export type Frame =
  /** A frame of signal-cli: `{envelope, account}`, or unreadable text that isn't JSON. */
  | { readonly kind: 'notification'; readonly value: unknown }
  /** The server's report of its own failure on a socket. */
  | { readonly kind: 'error'; readonly error: string };

const rpcSchema = z.object({ method: z.literal('receive'), params: z.unknown() });
/** How signal-cli starts the JSON-RPC frame. */
const shell = '{"jsonrpc":"2.0","method":"receive","params":';
const errorSchema = z.strictObject({ error: z.string() });

/**
 * Returns the text of a frame as it is. For one that is too long to be parsed, returns a substitute as JSON, which is
 * kept and recorded instead, and calls `onProblem` with the reason.
 */
export function boundFrame(raw: string, onProblem: (problem: string) => void): string {
  if (raw.length <= longestJson) return raw;
  const oversized = new OversizedJson(withoutShell(raw));
  onProblem(oversized.message);
  return JSON.stringify(oversized);
}

/** How often a list is cut before its end until it is JSON. */
const maxCuts = 16;

/**
 * Reads the messages at the start of what signal-cli wrote, which the server passes on as a list: everything else that
 * signal-cli reported follows them and isn't JSON (signal-cli-rest-api issues 407 and 680). Nothing after that is read,
 * because people may control parts of it.
 */
export function messagesBefore(list: string): readonly unknown[] {
  let end = list.lastIndexOf('},');
  for (let cuts = 0; cuts < maxCuts && end > 0; cuts += 1) {
    try {
      return z.array(z.unknown()).parse(JSON.parse(`${list.slice(0, end + 1)}]`));
    } catch {
      end = list.lastIndexOf('},', end - 1);
    }
  }
  return [];
}

/** Parses a frame: sockets and polls deliver the notification itself, the webhook wraps it in a JSON-RPC frame. */
export function parseFrame(raw: string): Frame {
  const value = parse(raw);
  const rpc = rpcSchema.safeParse(value);
  if (rpc.success) return { kind: 'notification', value: rpc.data.params };
  const error = errorSchema.safeParse(value);
  return error.success
    ? { kind: 'error', error: error.data.error.slice(0, 300) }
    : { kind: 'notification', value };
}

function parse(raw: string): unknown {
  try {
    return parseJson(raw);
  } catch {
    return withoutShell(raw);
  }
}

/** Unparsed text has to be the same on every path too, because it identifies the event. */
function withoutShell(raw: string): string {
  return raw.startsWith(shell) && raw.endsWith('}') ? raw.slice(shell.length, -1) : raw;
}
