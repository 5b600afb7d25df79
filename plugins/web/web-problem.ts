import { ParleyError } from '#contracts/errors.ts';

/** Creates a failure for the model to read. */
export function webProblem(message: string, cause?: unknown): ParleyError {
  return new ParleyError('tool_failed', message, { cause });
}

const sentences: Readonly<Record<string, string>> = {
  ENOTFOUND: "doesn't exist: its name has no address",
  EAI_AGAIN: "can't be found at the moment: the name server doesn't answer",
  ECONNREFUSED: "doesn't accept connections",
  ECONNRESET: 'broke the connection off',
  UND_ERR_SOCKET: 'broke the connection off',
  UND_ERR_CONNECT_TIMEOUT: "doesn't answer",
  UND_ERR_HEADERS_OVERFLOW: 'sent headers that are too long',
  ETIMEDOUT: "doesn't answer",
  EHOSTUNREACH: "can't be reached",
  ENETUNREACH: "can't be reached",
};

/** Returns a failure with a sentence about a server; failures that have one, and aborts, are returned unchanged. */
export function networkProblem(error: unknown, host: string, signal: AbortSignal): unknown {
  if (error instanceof ParleyError) return error;
  if (signal.aborted) {
    const isOverdue = signal.reason instanceof DOMException && signal.reason.name === 'TimeoutError';
    return isOverdue ? webProblem(`${host} took too long to answer.`, error) : signal.reason;
  }
  const code = codeOf(error);
  const sentence = sentences[code] ?? (/CERT|SSL|TLS/.test(code) ? 'has no valid certificate' : undefined);
  return webProblem(`${host} ${sentence ?? "couldn't be read"}${code === '' ? '' : ` (${code})`}.`, error);
}

/** Returns the error's code; of several addresses that were tried, the first one's. */
function codeOf(error: unknown): string {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return '';
}
