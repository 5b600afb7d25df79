/** Tries whether the sandbox works here, with a real command: an installed bubblewrap often may not be used. */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PluginFinding } from '#contracts/plugin.ts';
import type { ShellDeps } from './shell.ts';
import { createShell } from './shell.ts';

const timeoutMs = 10_000;
const missing = "bubblewrap isn't installed";

/** Returns what `doctor` and the status table say; undefined if the shell tools are off anyway. */
export async function checkShell(deps: ShellDeps, os: NodeJS.Platform): Promise<PluginFinding | undefined> {
  const { config } = deps;
  if (!config.enabled) return undefined;
  if (config.unsandboxed) {
    return {
      result: 'warning',
      detail:
        'UNSANDBOXED: the model’s commands can read and change whatever Parley can, including its credentials',
      fix: 'set plugins.shell.unsandboxed to false unless this machine is only for Parley',
    };
  }
  const off = (reason: string, fix: string) =>
    ({ result: 'failed', detail: `bash is off: ${reason}`, fix }) as const;
  if (os !== 'linux')
    return off(`its sandbox needs Linux, and this is ${os}`, 'run Parley on Linux to use it');
  const problem = await trySandbox(deps);
  return problem === undefined
    ? { result: 'ok', detail: 'a command ran in the sandbox' }
    : off(problem, fixFor(problem));
}

/** Runs a command that succeeds only in a working sandbox; returns what went wrong. */
async function trySandbox(deps: ShellDeps): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-shell-'));
  const server = createServer((socket) => socket.destroy());
  try {
    await mkdir(join(folder, '.git'));
    const port = deps.config.network ? undefined : await portOf(server);
    const start = createShell(deps);
    const running = await start(scriptOf(folder, port), { workspace: folder, timeoutMs });
    const end = await running.ended;
    const said = running.output.text().trim();
    if (end.kind === 'not-started') return end.isMissing ? missing : end.problem;
    if (end.kind !== 'exited') return `a command didn't end within ${timeoutMs / 1000} s`;
    if (end.code !== 0) return said === '' ? `a command ended with exit code ${end.code}` : said;
    const written = await readFile(join(folder, 'written'), 'utf8');
    return written === 'works\n' ? undefined : "a command's file didn't arrive in the workspace";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    server.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function scriptOf(folder: string, port: number | undefined): string {
  return [
    'fails() { echo "the sandbox leaks: $1"; exit 1; }',
    'echo works > written || exit 1',
    '(echo x > .git/written) 2>/dev/null && fails "it writes to .git"',
    '(echo x > /usr/parley-probe) 2>/dev/null && fails "it writes to /usr"',
    `test -e ${JSON.stringify(folder)} && fails "it sees the machine's folders"`,
    'test -e /etc/shadow && fails "it sees /etc/shadow"',
    ...(port === undefined
      ? []
      : [`(exec 3<>/dev/tcp/127.0.0.1/${port}) 2>/dev/null && fails "it reaches the network"`]),
    'exit 0',
  ].join('\n');
}

function portOf(server: Server): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' ? address?.port : undefined);
    });
  });
}

function fixFor(problem: string): string {
  if (problem === missing) return 'install it: apt-get install bubblewrap';
  if (/unknown option/i.test(problem)) return 'install bubblewrap 0.8 or newer, with its security updates';
  if (/uid map|user namespace|RTM_NEWADDR|namespace failed|mount proc|not permitted|denied/i.test(problem))
    return 'allow bubblewrap to make user namespaces; docs/shell.md has the steps for Ubuntu 24.04 and Docker';
  return 'see docs/shell.md';
}
