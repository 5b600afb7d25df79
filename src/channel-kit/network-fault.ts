/**
 * How far a request came that failed without an answer. Every channel asks this before it repeats a send:
 * what may have left is never sent again blindly.
 */

/** Codes of Node.js, OpenSSL and undici for connections that never stood. */
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
]);

/** True when the request certainly never left: no address, no connection, no trust. */
export function neverLeft(error: unknown): boolean {
  const faults = faultsIn(error).filter((fault) => codeOf(fault) !== undefined && !repeatsAttempt(fault));
  return (
    faults.length > 0 &&
    faults.every((fault) => neverConnected.has(codeOf(fault) ?? '') || isConnecting(fault))
  );
}

/** For logs and results: the codes of the fault, never an address, which could hold a token. */
export function noAnswerFrom(server: string, error: unknown): string {
  const codes = [...new Set(faultsIn(error).flatMap((fault) => codeOf(fault) ?? []))];
  return `no answer from ${server}${codes.length > 0 ? ` (${codes.join(', ')})` : ''}`;
}

function isConnecting(fault: unknown): boolean {
  return typeof fault === 'object' && fault !== null && 'syscall' in fault && fault.syscall === 'connect';
}

function codeOf(fault: unknown): string | undefined {
  const code = typeof fault === 'object' && fault !== null && 'code' in fault ? fault.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** The fault of a connect to several addresses has the code of its first attempt, without the `syscall`. */
function repeatsAttempt(fault: unknown): boolean {
  const [first] = attemptsOf(fault);
  return first !== undefined && codeOf(first) === codeOf(fault);
}

function attemptsOf(fault: unknown): readonly unknown[] {
  const isMany =
    typeof fault === 'object' && fault !== null && 'errors' in fault && Array.isArray(fault.errors);
  return isMany ? (fault.errors as readonly unknown[]) : [];
}

/** grammY keeps the fault in `error`, fetch in `cause`, a failed connect to several addresses in `errors`. */
function faultsIn(error: unknown, depth = 0): readonly unknown[] {
  if (typeof error !== 'object' || error === null || depth > 6) return [];
  const inner = ['error', 'cause'].map((key) => (error as Record<string, unknown>)[key]);
  return [error, ...[...inner, ...attemptsOf(error)].flatMap((one) => faultsIn(one, depth + 1))];
}
