import { chmod, mkdtemp, readFile, rm, stat, statfs } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import type { Config } from '../../config/config.ts';
import { askGateway, wordsWithoutGateway } from '../ask-gateway.ts';
import { type DoctorCheck, failed, ok, warning } from './check.ts';

const oldestNode = 24;

/** Checks the version of Node.js that runs this command. */
export function checkNode(version = process.versions.node): DoctorCheck {
  const [major = 0] = version.split('.').map(Number);
  if (major >= oldestNode) return ok('node', version);
  return failed('node', `${version} is too old`, `install Node.js ${oldestNode} or newer`);
}

/**
 * Checks the data folder: that it exists, is private and writable, and has enough space. `fixes`: also corrects what
 * needs no decision, which is permissions that are too broad.
 */
export async function checkFolder(
  { dataDir, envFiles }: Config,
  { fixes }: { readonly fixes: boolean },
): Promise<readonly DoctorCheck[]> {
  const name = 'data folder';
  const found = await stat(dataDir).catch(() => undefined);
  if (found === undefined) {
    const folder = await nearestFolder(dataDir);
    const isPossible = await isWritable(folder);
    return [
      isPossible
        ? ok(name, `the first start creates ${dataDir}`)
        : failed(
            name,
            `${folder} isn't writable, so ${dataDir} can't be created`,
            'set PARLEY_DATA_DIR to a folder you can write to',
          ),
    ];
  }
  if (!found.isDirectory() || !(await isWritable(dataDir)))
    return [
      failed(name, `${dataDir} isn't writable`, 'make it a folder you can write to, or set PARLEY_DATA_DIR'),
    ];
  return [ok(name, dataDir), ...(await checkModes({ dataDir, envFiles }, fixes)), await checkSpace(dataDir)];
}

async function nearestFolder(path: string): Promise<string> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const found = await stat(folder).catch(() => undefined);
    if (found?.isDirectory() || folder === dirname(folder)) return folder;
  }
}

/** Tries to write: root may write where the mode forbids it, and a disk may be read-only. */
async function isWritable(folder: string): Promise<boolean> {
  try {
    await rm(await mkdtemp(join(folder, '.parley-doctor-')), { recursive: true });
    return true;
  } catch {
    return false;
  }
}

/** Checks that the folder and the files with secrets are private, so that other users can't read them. */
async function checkModes(
  { dataDir, envFiles }: Pick<Config, 'dataDir' | 'envFiles'>,
  fixes: boolean,
): Promise<readonly DoctorCheck[]> {
  if (process.platform === 'win32') return [];
  const checks = await Promise.all([
    checkMode({ path: dataDir, mode: 0o700, fixes }),
    checkMode({ path: join(dataDir, 'token'), mode: 0o600, fixes }),
    ...envFiles.map(({ path }) => checkMode({ path, mode: 0o600, fixes })),
  ]);
  return checks.flat();
}

type Private = { readonly path: string; readonly mode: number; readonly fixes: boolean };

async function checkMode({ path, mode, fixes }: Private): Promise<readonly DoctorCheck[]> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || (found.mode & 0o077) === 0) return [];
  const now = (found.mode & 0o777).toString(8);
  if (!fixes)
    return [
      warning(
        'permissions',
        `other users of this machine can access ${path} (mode ${now})`,
        `run: ${parleyCommand} doctor --fix, or: chmod ${mode.toString(8)} ${path}`,
      ),
    ];
  try {
    await chmod(path, mode);
    return [ok('permissions', `${path} is now private (its mode was ${now})`)];
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return [
      warning(
        'permissions',
        `${path} has mode ${now}: ${reason}`,
        `as its owner: chmod ${mode.toString(8)} ${path}`,
      ),
    ];
  }
}

/** Below this, Parley accepts no messages. */
const minBytes = 200 * 1024 * 1024;
const comfortableBytes = 1024 * 1024 * 1024;

async function checkSpace(dataDir: string): Promise<DoctorCheck> {
  const { bavail, bsize } = await statfs(dataDir);
  return judgeSpace(bavail * bsize, dataDir);
}

export function judgeSpace(freeBytes: number, dataDir: string): DoctorCheck {
  const detail = `${Math.floor(freeBytes / (1024 * 1024))} MB free`;
  const fix = `free space on the disk of ${dataDir}`;
  if (freeBytes < minBytes)
    return failed('disk', `${detail}; Parley stops accepting messages below 200 MB`, fix);
  return freeBytes < comfortableBytes ? warning('disk', detail, fix) : ok('disk', detail);
}

/** Checks that the port is free, or used by this gateway. */
export async function checkPort(config: Config): Promise<DoctorCheck> {
  const { host, port, dataDir } = config;
  const name = 'page';
  if (port === 0) {
    const answer = await askGateway(config);
    const running = answer.kind === 'running' ? `; Parley runs at ${answer.url}` : '';
    return ok(name, `any free port${running}`);
  }
  const problem = await tryToListen(host, port);
  if (problem === undefined) return ok(name, `${host}:${port} is free; Parley isn't running there`);
  if (problem !== 'EADDRINUSE')
    return failed(name, `${host}:${port} can't be used (${problem})`, 'correct PARLEY_HOST and PARLEY_PORT');
  const answer = await askGateway(config);
  if (answer.kind === 'running') return ok(name, `Parley ${answer.status.version} runs at ${answer.url}`);
  if (answer.kind === 'refused')
    return failed(name, wordsWithoutGateway(answer, config), 'use the settings it was started with');
  if (answer.kind === 'silent' || (answer.kind === 'unproven' && answer.reasons.length > 0))
    return failed(name, wordsWithoutGateway(answer, config), "check the gateway's log");
  const pid = await readFile(join(dataDir, 'parley.pid'), 'utf8').catch(() => 'none');
  return failed(
    name,
    `${host}:${port} is used by another program, or by Parley with another data folder (last process of this folder: ${pid})`,
    'set PARLEY_PORT to a free port, or stop that program',
  );
}

/** Returns the error code, or undefined when the port can be used. */
function tryToListen(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port }, () => server.close(() => resolve(undefined)));
  });
}
