import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { ParleyError } from '#contracts/errors.ts';
import { childEnvironment } from '../config/environment.ts';

export type ServerProcess = ServerFacts & {
  /** Resolves with the reason when the process has ended, whatever the cause. */
  readonly ended: Promise<string>;
  /** Ends the process; resolves when it is gone. */
  end(): Promise<void>;
};

export type ServerProcessOptions = {
  readonly command: string;
  readonly socketPath: string;
  /** Its working directory, though it writes no files. */
  readonly folder: string;
  readonly startTimeoutMs: number;
};

/**
 * Starts `redis-server` on a unix socket and resolves once it responds. Throws ParleyError `redis_unavailable`, with
 * advice, if it is missing, too old or doesn't come up.
 */
export async function startServerProcess(options: ServerProcessOptions): Promise<ServerProcess> {
  const child = spawn(options.command, serverArguments(options), {
    cwd: options.folder,
    env: childEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
    // Its own process group: Ctrl-C in the terminal must reach only Parley, not its server.
    detached: true,
  });
  const ended = watchEnd(child);
  const guard = guardAgainstOrphaning(child);
  ended.then(() => guard.release());
  const end = () => endChild(child);
  try {
    const facts = await waitUntilReady(options, ended);
    requireVersion(facts.version);
    child.unref();
    return { ...facts, ended, end };
  } catch (error) {
    await end();
    throw error;
  }
}

function serverArguments(options: ServerProcessOptions): readonly string[] {
  const settings: Record<string, string> = {
    port: '0',
    unixsocket: options.socketPath,
    unixsocketperm: '700',
    dir: options.folder,
    // No persistence: everything in it is rebuilt from the store.
    save: '',
    appendonly: 'no',
    daemonize: 'no',
    'maxmemory-policy': 'noeviction',
    loglevel: 'warning',
    databases: '1',
    // How often it looks after itself per second; it has little to look after.
    hz: '2',
  };
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}

/** Collects the last output, so that the reason for an early end can be reported. */
function watchEnd(child: ChildProcess): Promise<string> {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8');
    stream?.on('data', (chunk: string) => {
      output = (output + chunk).slice(-2000);
    });
    // The pipes of a detached child must not keep Parley running.
    if (stream && 'unref' in stream && typeof stream.unref === 'function') stream.unref();
  }
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code === 'ENOENT' ? missing : `could not be started: ${error.message}`);
    });
    child.once('exit', (code, signal) => {
      resolve(`ended with ${signal ?? `code ${code}`}${output === '' ? '' : `: ${output.trim()}`}`);
    });
  });
}

const missing = 'is not installed';

/**
 * Ends the server if Parley itself is killed: a shell waits for the end of a pipe that only this process keeps open. It
 * takes less than 1 MB and works on every POSIX system.
 */
function guardAgainstOrphaning(child: ChildProcess): { release(): void } {
  if (child.pid === undefined) return { release: () => undefined };
  const guard = spawn('/bin/sh', ['-c', 'read -r _; kill -9 "$1" 2>/dev/null', 'sh', String(child.pid)], {
    env: {},
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  // Without a shell, the next start finds the orphan by its socket.
  guard.on('error', () => undefined);
  guard.stdin?.on('error', () => undefined);
  guard.unref();
  const { stdin } = guard;
  if (stdin && 'unref' in stdin && typeof stdin.unref === 'function') stdin.unref();
  return { release: () => guard.kill('SIGKILL') };
}

async function waitUntilReady(options: ServerProcessOptions, ended: Promise<string>): Promise<ServerFacts> {
  const deadline = performance.now() + options.startTimeoutMs;
  const early: { reason?: string } = {};
  ended.then((reason) => {
    early.reason = reason;
  });
  while (performance.now() < deadline) {
    if (early.reason !== undefined) throw startFault(early.reason, options);
    try {
      return await askServer(options.socketPath, 500);
    } catch {
      // Not listening yet.
      await delay(2);
    }
  }
  throw startFault(`did not answer within ${options.startTimeoutMs} ms`, options);
}

function startFault(reason: string, options: ServerProcessOptions): ParleyError {
  const wayOut =
    reason === missing
      ? `Install it with:  ${installCommand()}\nor set REDIS_URL to a Redis you run yourself (6.2 or newer).`
      : `Its socket would be ${options.socketPath}. Or set REDIS_URL to a Redis you run yourself.`;
  return new ParleyError('redis_unavailable', `${options.command} ${reason}. ${wayOut}`);
}

/** Returns the command that installs Redis on this kind of system. */
export function installCommand(): string {
  if (process.platform === 'darwin') return 'brew install redis';
  return 'apt-get install -y redis-server   (Fedora: dnf install -y redis, Alpine: apk add redis)';
}

function requireVersion(version: string): void {
  if (isRecentEnough(version)) return;
  throw new ParleyError('redis_unavailable', `redis-server ${version} is too old; install 6.2 or newer.`);
}

/** Says whether the version is at least 6.2, which BullMQ 6 requires. */
export function isRecentEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 6 || (major === 6 && minor >= 2);
}

/**
 * Kills the child: there is nothing in it to save, and Redis checks for SIGTERM only ten times a second. A child that
 * never started has no process to end.
 */
async function endChild(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.ref();
  child.kill('SIGKILL');
  await exit;
}

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

type ServerFacts = { readonly version: string; readonly pid: number };

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
