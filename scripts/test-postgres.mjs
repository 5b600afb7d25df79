// Starts a PostgreSQL cluster for the tests: created in a temporary folder, reachable only on loopback, and
// removed afterwards, even when the test run is killed.
import { spawn, spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPostgres } from './bootstrap.mjs';

const startTimeoutMs = 30_000;

/**
 * Starts the cluster; resolves with its address and controls. `over` overrides the tests' settings. Throws when the
 * server doesn't come up.
 */
export async function startPostgres(over = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'parley-postgres-'));
  try {
    const account = unprivilegedAccount();
    if (account.uid !== undefined) chownSync(folder, account.uid, account.gid);
    const data = join(folder, 'data');
    initialise(data, account);
    const port = await freePort();
    const again = () => start({ data, folder, port, account, over });
    let server = await again();
    return {
      url: `postgres://postgres@127.0.0.1:${port}/postgres`,
      // Ends abruptly, as in a crash; its files stay.
      crash: () => server.stop(),
      restart: async () => {
        server = await again();
      },
      stop: async () => {
        await server.stop();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

/** Returns an account for PostgreSQL, which refuses to run as root. */
function unprivilegedAccount() {
  if (process.getuid?.() !== 0) return {};
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((flag) => spawnSync('id', [flag, name], { encoding: 'utf8' }));
    if (uid.status === 0) return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  }
  throw new Error('PostgreSQL must not run as root, and there is neither a user "postgres" nor "nobody".');
}

function initialise(data, account) {
  const args = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  const result = spawnSync(findPostgres('initdb'), args, { ...account, cwd: '/', encoding: 'utf8' });
  if (result.status !== 0) throw new Error(`initdb failed: ${result.stderr}${result.error ?? ''}`);
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

async function start({ data, folder, port, account, over }) {
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: folder,
    fsync: 'off',
    full_page_writes: 'off',
    max_connections: 200,
    shared_buffers: '32MB',
    ...over,
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(findPostgres('postgres'), ['-D', data, ...args], {
    ...account,
    cwd: '/',
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  // Waits for the end of a pipe that only this process holds open, then cleans up.
  const guard = spawn(
    '/bin/sh',
    ['-c', 'read -r _; kill -QUIT "$1" 2>/dev/null; rm -rf "$2"', 'sh', child.pid, folder].map(String),
    {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    },
  );
  guard.unref();
  guard.stdin.unref();
  const exit = new Promise((resolve) => {
    child.once('exit', resolve);
    child.once('error', resolve);
  });
  const stop = async () => {
    guard.kill('SIGKILL');
    // "Immediate" shutdown, since nothing in there is needed.
    child.kill('SIGQUIT');
    await exit;
  };
  try {
    await untilReady(child, exit);
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

function untilReady(child, exit) {
  return new Promise((resolve, reject) => {
    let output = '';
    const fail = (reason) => reject(new Error(`PostgreSQL ${reason}: ${output.slice(-1000)}`));
    const timer = setTimeout(fail, startTimeoutMs, `was not ready after ${startTimeoutMs} ms`);
    exit.then((code) => fail(`ended with code ${code}`));
    child.once('error', (error) => fail(`could not be started (${error.message})`));
    child.stderr.setEncoding('utf8');
    child.stderr.on('data', (chunk) => {
      output = (output + chunk).slice(-4000);
      if (!output.includes('ready to accept connections')) return;
      clearTimeout(timer);
      resolve();
    });
  });
}
