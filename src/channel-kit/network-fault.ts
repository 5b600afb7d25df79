import { ParleyError } from '#contracts/errors.ts';

// Determines how far a request got that failed without an answer. Every channel checks this before it repeats a send,
// because a message that may have left is never resent blindly.

/** Codes of Node.js, OpenSSL and undici for connections that were never established. */
const neverConnected = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_SOCKET_CONNECTION_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  // A proxy that didn't connect, and a redirect that wasn't followed: nobody has read the request who counts.
  'ERR_PROXY_TUNNEL',
  'ERR_REDIRECTED',
]);

/** True if the request certainly never left: no address, no connection or no trust. */
export function neverLeft(error: unknown): boolean {
  const faults = faultsIn(error).filter((fault) => codeOf(fault) !== undefined && !repeatsAttempt(fault));
  return (
    faults.length > 0 &&
    faults.every((fault) => neverConnected.has(codeOf(fault) ?? '') || fault.syscall === 'connect')
  );
}

/** Returns a reason for logs and results: the fault's codes, but never an address, which could contain a token. */
export function noAnswerFrom(server: string, error: unknown): string {
  // Names hosts only, without their paths.
  const redirect = faultsIn(error).find((fault) => codeOf(fault) === 'ERR_REDIRECTED')?.message;
  if (typeof redirect === 'string') return redirect;
  const codes = [...new Set(faultsIn(error).flatMap((fault) => codeOf(fault) ?? []))];
  return `no answer from ${server}${codes.length > 0 ? ` (${codes.join(', ')})` : ''}`;
}

function codeOf({ code }: Fault): string | undefined {
  return typeof code === 'string' ? code : undefined;
}

/** True for the fault of a connect to several addresses: it has its first attempt's code, without the `syscall`. */
function repeatsAttempt(fault: Fault): boolean {
  const [first] = attemptsOf(fault);
  return isFault(first) && codeOf(first) === codeOf(fault);
}

function attemptsOf({ errors }: Fault): readonly unknown[] {
  return Array.isArray(errors) ? errors : [];
}

type Fault = Readonly<Record<string, unknown>>;

function isFault(value: unknown): value is Fault {
  return typeof value === 'object' && value !== null;
}

/** Finds nested faults: in `error` (grammY), `cause` (fetch) or `errors` (a failed connect to several addresses). */
function faultsIn(error: unknown, depth = 0): readonly Fault[] {
  if (!isFault(error) || depth > 6) return [];
  const inner = [error.error, error.cause, ...attemptsOf(error)];
  return [error, ...inner.flatMap((one) => faultsIn(one, depth + 1))];
}

export type FaultDetail = {
  /** The wait that the network asks for, ms. */
  readonly afterMs?: number | undefined;
  readonly cause?: unknown;
};

/** Creates the fault for a network that doesn't answer properly; the call is retried later. */
export function channelUnavailable(what: string, { afterMs, cause }: FaultDetail = {}): ParleyError {
  const retry = { kind: 'later', ...(afterMs === undefined ? {} : { afterMs }) } as const;
  return new ParleyError('channel_unavailable', what, { cause, retry });
}
