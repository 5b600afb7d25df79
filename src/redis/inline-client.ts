import { connect } from 'node:net';

/**
 * Sends one inline command over a unix socket and returns the raw response: enough to check for a server and to shut it
 * down, without loading a client library at the start. Rejects if nothing listens or responds within `timeoutMs`.
 */
export function sendInline(socketPath: string, command: string, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath);
    let answer = '';
    const finish = (error?: Error) => {
      socket.destroy();
      if (error === undefined) resolve(answer);
      else reject(error);
    };
    socket.setEncoding('utf8');
    socket.setTimeout(timeoutMs, () => finish(new Error(`no answer from ${socketPath} in ${timeoutMs} ms`)));
    socket.on('error', finish);
    // The response to SHUTDOWN is the end of the connection.
    socket.on('close', () => finish());
    socket.on('data', (chunk: string) => {
      answer += chunk;
      if (isComplete(answer)) finish();
    });
    socket.write(`${command}\r\n`);
  });
}

/** Says whether this is a simple string, an error, or a bulk string with all its bytes (protocol RESP2). */
function isComplete(answer: string): boolean {
  if (!answer.includes('\r\n')) return false;
  const [, length] = /^\$(\d+)\r\n/.exec(answer) ?? [];
  if (length === undefined) return true;
  const head = answer.indexOf('\r\n') + 2;
  return Buffer.byteLength(answer.slice(head)) >= Number(length) + 2;
}

export type ServerFacts = { readonly version: string; readonly pid: number };

/** Asks a server for its version and process id. Rejects like `sendInline`, and while the server is still loading. */
export async function askServer(socketPath: string, timeoutMs: number): Promise<ServerFacts> {
  const answer = await sendInline(socketPath, 'INFO server', timeoutMs);
  const version = /^redis_version:(.+?)\r?$/m.exec(answer)?.[1];
  const pid = /^process_id:(\d+)/m.exec(answer)?.[1];
  if (version === undefined || pid === undefined) {
    throw new Error(`unexpected answer from ${socketPath}: ${answer.slice(0, 80)}`);
  }
  return { version, pid: Number(pid) };
}
