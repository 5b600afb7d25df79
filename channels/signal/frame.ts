import { z } from 'zod';
import { boundProblem } from '#channel-kit/bounded-json.ts';
import { parseJson } from '#channel-kit/parse-json.ts';
import { UnparsedJson } from '#channel-kit/unparsed-json.ts';

/** Something that arrived, by whichever way. */
export type Frame =
  /** A frame of signal-cli: `{envelope, account}`, or text that is no JSON, which nobody can read. */
  | { readonly kind: 'notification'; readonly value: unknown }
  /** The server's report of its own failure on a socket. */
  | { readonly kind: 'error'; readonly error: string };

const rpcSchema = z.object({ method: z.literal('receive'), params: z.unknown() });
/** How signal-cli begins the JSON-RPC frame. */
const shell = '{"jsonrpc":"2.0","method":"receive","params":';
const errorSchema = z.strictObject({ error: z.string() });

/**
 * Returns the text of a frame as it is; of one that would hold the event loop, what stands for it, as JSON: it is kept
 * and recorded instead. `onProblem`: told why.
 */
export function boundFrame(raw: string, onProblem: (problem: string) => void): string {
  const problem = boundProblem(raw);
  if (problem === undefined) return raw;
  onProblem(problem);
  return JSON.stringify(UnparsedJson.of(withoutShell(raw), problem));
}

/** A socket and a poll give the notification itself, the webhook the JSON-RPC frame around it. */
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

/** Also what is not parsed has to be the same by either way: its text is what it is known by. */
function withoutShell(raw: string): string {
  return raw.startsWith(shell) && raw.endsWith('}') ? raw.slice(shell.length, -1) : raw;
}
