/**
 * The sandbox: bubblewrap gives each command its own namespaces, with the workspace as the only writable folder of the
 * machine. Everything else is either listed here, read-only, or doesn't exist for the command.
 */
import { constants as flags } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import { type CommandDescription, sandboxWorkspace } from './command.ts';
import type { ShellConfig } from './config.ts';
import type { Launch } from './run-command.ts';

/** From linux/fcntl.h; Node has no name for it. Opens the entry itself without reading from a device or FIFO. */
const O_PATH = 0o10000000;

/** Entries at the top of a workspace that commands may read but not change: git and Parley run what is in them. */
const protectedEntries = ['.git', 'hooks', 'skills', 'plugins'] as const;

/** Files and folders of the machine that commands may read, besides `/usr`. None contains credentials. */
const readable = [
  ...['/bin', '/sbin', '/lib', '/lib32', '/lib64'],
  ...['alternatives', 'ca-certificates', 'fonts', 'hosts', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d']
    .concat(['localtime', 'mime.types', 'nsswitch.conf', 'pki/ca-trust', 'pki/tls/certs', 'protocols'])
    .concat(['services', 'ssl/certs', 'ssl/openssl.cnf', 'timezone'])
    .map((name) => `/etc/${name}`),
];

/** Descriptors that bubblewrap is given: where it reports, and what it copies into the sandbox. */
const fds = { status: 3, passwd: 4, group: 5, firstEntry: 6 } as const;
const passwd = 'agent:x:1000:1000:agent:/tmp/home:/bin/bash\n';
const group = 'agent:x:1000:\n';

const tmpBytes = 512 * 1024 * 1024;

/** Prepares the command to run in a sandbox, creating the workspace if it is missing. `close` it once it is started. */
export async function sandboxed(
  { argv, cwd, environment }: CommandDescription,
  options: {
    /** The program; a name is looked up in the command's PATH. */
    readonly bwrap: string;
    readonly config: ShellConfig;
    readonly workspace: string;
    readonly disks: DiskCalls;
    /** A folder of the machine that the command may read, and where it finds it. */
    readonly mount?: { readonly from: string; readonly to: string };
  },
): Promise<Launch & { close(): Promise<void> }> {
  const { bwrap, config, workspace, disks, mount } = options;
  await disks.run(workspace, () => mkdir(workspace, { recursive: true }));
  const entries: { readonly name: string; readonly handle: FileHandle }[] = [];
  const close = async () => {
    for (const { handle } of entries) await disks.finish(workspace, () => handle.close());
  };
  try {
    for (const name of protectedEntries) {
      const handle = await openUnlinked(workspace, name, disks);
      if (handle !== undefined) entries.push({ name, handle });
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    file: bwrap,
    args: [
      ...namespaces(config),
      ...mounts(config, workspace),
      ...(mount === undefined ? [] : ['--ro-bind', mount.from, mount.to]),
      ...entries.flatMap(({ name }, index) => [
        ...['--ro-bind-fd', String(fds.firstEntry + index), `${sandboxWorkspace}/${name}`],
      ]),
      ...['--remount-ro', '/', '--chdir', cwd, '--', ...limits(config), ...argv],
    ],
    environment,
    statusFd: fds.status,
    writes: new Map([
      [fds.passwd, passwd],
      [fds.group, group],
    ]),
    passes: entries.map(({ handle }) => handle.fd),
    close,
  };
}

/**
 * Opens an entry of the workspace by itself, never what a link leads to: bubblewrap follows links, and a command of an
 * earlier call may have left one that leads out of the workspace.
 */
async function openUnlinked(
  workspace: string,
  name: string,
  disks: DiskCalls,
): Promise<FileHandle | undefined> {
  const drop = (late: FileHandle) => void disks.finish(workspace, () => late.close()).catch(() => undefined);
  const openIt = async () => {
    try {
      return await open(`${workspace}/${name}`, O_PATH | flags.O_NOFOLLOW);
    } catch {
      return undefined;
    }
  };
  const handle = await disks.run(workspace, openIt, (late) => late && drop(late));
  if (handle === undefined) return undefined;
  const stats = await disks.run(workspace, () => handle.stat());
  if (stats.isDirectory() || stats.isFile()) return handle;
  await disks.finish(workspace, () => handle.close());
  return undefined;
}

function namespaces({ network }: ShellConfig): readonly string[] {
  return [
    // `--unshare-all` alone would go on without a user namespace.
    ...['--unshare-all', '--unshare-user', ...(network ? ['--share-net'] : [])],
    ...['--disable-userns', '--cap-drop', 'ALL', '--uid', '1000', '--gid', '1000', '--hostname', 'sandbox'],
    // Without `--new-session` a command could type into the terminal that Parley was started in.
    ...['--die-with-parent', '--new-session', '--json-status-fd', String(fds.status)],
  ];
}

function mounts({ network }: ShellConfig, workspace: string): readonly string[] {
  const shown = [...readable, ...(network ? ['/etc/resolv.conf'] : [])];
  return [
    ...['--ro-bind', '/usr', '/usr', ...shown.flatMap((path) => ['--ro-bind-try', path, path])],
    ...[
      '--ro-bind-data',
      String(fds.passwd),
      '/etc/passwd',
      '--ro-bind-data',
      String(fds.group),
      '/etc/group',
    ],
    ...['--proc', '/proc', '--dev', '/dev', '--size', String(tmpBytes), '--tmpfs', '/dev/shm'],
    ...['--size', String(tmpBytes), '--tmpfs', '/tmp', '--dir', '/tmp/home'],
    ...['--bind', workspace, sandboxWorkspace],
  ];
}

/** The programs that start the command with its limits; the machine stays usable beside it. */
function limits({ maxProcesses, memoryMb, maxFileMb }: ShellConfig): readonly string[] {
  const bytes = (megabytes: number) => String(megabytes * 1024 * 1024);
  return [
    ...['nice', '-n', '10', 'choom', '-n', '1000', '--'],
    ...['prlimit', '--core=0', `--nproc=${maxProcesses}`, `--data=${bytes(memoryMb)}`],
    ...[`--fsize=${bytes(maxFileMb)}`, '--'],
  ];
}
