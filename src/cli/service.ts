import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isImage, parleyCommand, startCommand } from '#channel-kit/own-commands.ts';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Config } from '../config/config.ts';
import {
  homeFolder,
  readSurroundings,
  servicePlaces,
  sudoCaller,
  userConfigFolder,
} from '../config/environment.ts';
import { loadConfig } from '../config/load-config.ts';
import { workspacesOutside } from '../config/workspace-rules.ts';
import type { ExitCode } from './exit-code.ts';
import { type CommandOutput, printOutput } from './print.ts';

type JsonOption = { readonly asJson: boolean };

/** Writes the unit, starts it and enables it at boot. `prints`: only shows the unit and changes nothing. */
export async function installService(options: {
  readonly isSystem: boolean;
  readonly prints: boolean;
}): Promise<CommandOutput> {
  const { isSystem, prints } = options;
  const sudo = sudoCaller();
  if (sudo !== undefined && !isSystem)
    throw new ParleyError(
      'invalid_input',
      `A service for your own user doesn't need sudo. Run: ${parleyCommand} service install\nFor the whole machine: sudo ${parleyCommand} service install --system`,
    );
  const home = installationHome();
  const config = loadConfig(readSurroundings(home), home);
  const { dataDir } = config;
  const caller = sudo ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  const owner = isSystem ? findOwner({ dataDir, home, caller }) : caller;
  const folder = existsSync(home) ? home : dirname(dataDir);
  const workspaces = workspacesOutside(config, [folder, dataDir]);
  const text = renderUnit({
    ...{ isSystem, owner, dataDir, workspaces, home: folder, places: servicePlaces() },
    node: process.execPath,
    program: join(import.meta.dirname, '../../bin/parley.mjs'),
    // Longer than Parley's own deadline, so that a running tool is handed over, not killed.
    stopS: Math.ceil(config.shutdownMs / 1000) + 5,
  });
  const path = unitPath(isSystem, userConfigFolder());
  if (prints) return { result: { path, unit: text }, lines: [text.trimEnd()] };
  requireSystemd();
  if (isSystem && process.getuid?.() !== 0)
    throw new ParleyError(
      'invalid_input',
      `Only root can write ${path}. Run: sudo ${parleyCommand} service install --system`,
    );
  // systemd refuses a unit that names a folder that doesn't exist.
  for (const needed of [dataDir, ...workspaces]) makeFolderFor(owner, needed);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o644 });
  const control = controlOf(isSystem);
  control('daemon-reload');
  control('enable', '--now', serviceName);
  await assertStaysUp(() => stateOf(isSystem), systemClock);
  // Otherwise a user's services end with the last session.
  const stays = isSystem || spawnSync('loginctl', ['enable-linger'], { stdio: 'ignore' }).status === 0;
  const warnings = [
    ...(stays ? [] : ['It stops when you sign out. To keep it running: sudo loginctl enable-linger $USER']),
    ...unseen(config, home),
  ];
  const lines = [
    `Installed ${path}. Parley is running, and starts with the machine.`,
    ...warnings,
    `See: ${parleyCommand} service status, ${parleyCommand} logs -f`,
  ];
  return { result: { path, isSystem, warnings }, lines };
}

/** Shows systemd's status of the service; the exit code is 0 when it runs. */
export async function runServiceStatus({ asJson }: JsonOption): Promise<ExitCode> {
  const { isSystem, path } = installed();
  if (asJson) {
    const state = stateOf(isSystem);
    const code = state === 'active' ? 0 : 1;
    return printOutput({ result: { path, isSystem, state }, lines: [], code }, { asJson });
  }
  const { status } = spawnSync('systemctl', [...scope(isSystem), 'status', '--no-pager', serviceName], {
    stdio: 'inherit',
  });
  return status === 0 ? 0 : 1;
}

/** Stops the service and removes its unit; the data stays. */
export async function uninstallService(): Promise<CommandOutput> {
  const { isSystem, path } = installed();
  const control = controlOf(isSystem);
  control('disable', '--now', serviceName);
  rmSync(path);
  control('daemon-reload');
  const { dataDir } = loadConfig(undefined, installationHome());
  return { result: { path, dataDir }, lines: [`Removed ${path}. The data stays in ${dataDir}.`] };
}

/** Returns the installation's home. Under sudo, HOME may be root's, which has nothing to do with it. */
function installationHome(): string {
  const sudo = sudoCaller();
  return homeFolder(sudo && userHome(sudo));
}

/** Warns of variables that are set in this shell but in no file, since the service wouldn't see them. */
function unseen({ variables, envFiles }: Config, home: string): readonly string[] {
  const inFiles = envFiles.flatMap(({ names }) => names);
  const places = Object.keys(servicePlaces());
  const lost = variables.filter((name) => !inFiles.includes(name) && !places.includes(name));
  return lost.length === 0
    ? []
    : [
        `Set in this shell only, so the service doesn't see them: ${lost.join(', ')}. Put them in ${join(home, '.env')}, then run: ${parleyCommand} service install`,
      ];
}

/** A unit that was installed, for the whole machine or for this user. */
type InstalledService = { readonly isSystem: boolean; readonly path: string };

function installed(): InstalledService {
  requireSystemd();
  const service = installedService();
  if (service !== undefined) return service;
  throw new ParleyError('invalid_input', `There is no service. Install it: ${parleyCommand} service install`);
}

/** Returns the installed service; undefined if there is none, or systemd doesn't run here. */
export function installedService(): InstalledService | undefined {
  if (!isSystemdHere()) return undefined;
  const places = [false, true].map((isSystem) => ({
    isSystem,
    path: unitPath(isSystem, userConfigFolder()),
  }));
  return places.find(({ path }) => existsSync(path));
}

/** Says whether the service runs now. */
export function isServiceActive({ isSystem }: InstalledService): boolean {
  return stateOf(isSystem) === 'active';
}

function controlOf(isSystem: boolean): (...args: readonly string[]) => void {
  return (...args) => {
    const result = spawnSync('systemctl', [...scope(isSystem), ...args], { encoding: 'utf8' });
    if (result.status !== 0) throw failed(args, result);
  };
}

function failed(args: readonly string[], { stderr, error }: SpawnSyncReturns<string>): ParleyError {
  const reason = error?.message ?? stderr.trim();
  return new ParleyError('invalid_input', `systemctl ${args.join(' ')} failed: ${reason}`);
}

/** Returns the state from `systemctl is-active`: `active`, or `activating` while systemd waits to try again. */
function stateOf(isSystem: boolean): string {
  const { stdout } = spawnSync('systemctl', [...scope(isSystem), 'is-active', serviceName], {
    encoding: 'utf8',
  });
  return stdout?.trim() || 'unknown';
}

/** Watches the service for 3 s, since a failing start ends quickly. Throws `invalid_input` with a next step. */
export async function assertStaysUp(state: () => string, clock: Pick<Clock, 'wait'>): Promise<void> {
  for (let look = 0; look < 6; look++) {
    await clock.wait(500);
    const now = state();
    if (now !== 'active')
      throw new ParleyError(
        'invalid_input',
        `The service is installed, but Parley doesn't stay up (systemd: ${now}). To see why: ${parleyCommand} logs`,
      );
  }
}

const scope = (isSystem: boolean) => (isSystem ? [] : ['--user']);

/** Checks for the folder that exists when systemd is running (sd_booted(3)); a container may have just the programs. */
function isSystemdHere(): boolean {
  return existsSync('/run/systemd/system');
}

function requireSystemd(): void {
  if (isSystemdHere()) return;
  const instead = isImage
    ? 'In a container, its restart policy keeps Parley running.'
    : `Let your own supervisor run: ${startCommand}`;
  throw new ParleyError('invalid_input', `systemd doesn't run here. ${instead}`);
}

/** The systemd unit of a gateway on this machine, as text, so that it can be reviewed before it takes effect. */

export type ServiceUnit = {
  /** The service of the whole machine, or of a single user. */
  readonly isSystem: boolean;
  /** Absolute path of Node.js. */
  readonly node: string;
  /** Absolute path of bin/parley.mjs. */
  readonly program: string;
  readonly home: string;
  readonly dataDir: string;
  /** Agents' workspaces outside both folders. */
  readonly workspaces: readonly string[];
  /** Only for the machine's service: the numeric user and group that own the data. */
  readonly owner: { readonly uid: number; readonly gid: number };
  /** Variables that name places; secrets stay in `.env`. */
  readonly places: Readonly<Record<string, string>>;
  /** How long a stop may take, seconds. */
  readonly stopS: number;
};

export const serviceName = 'parley.service';

/** Renders the unit. */
export function renderUnit(unit: ServiceUnit): string {
  const { isSystem, node, program, home, places, stopS } = unit;
  const environment = Object.entries({ NODE_ENV: 'production', ...places });
  const lines = [
    '[Unit]',
    'Description=Parley, a chat gateway for AI agents',
    ...(isSystem ? ['Wants=network-online.target', 'After=network-online.target'] : []),
    '',
    '[Service]',
    'Type=exec',
    `ExecStart=${quote(node)} ${quote(program)} start`,
    'ExecReload=/bin/kill -HUP $MAINPID',
    // This directive takes a single path, so quotes would be part of it.
    `WorkingDirectory=${home.replaceAll('%', '%%')}`,
    ...environment.map(([name, value]) => `Environment=${quote(`${name}=${value}`)}`),
    'Restart=on-failure',
    'RestartSec=2',
    `TimeoutStopSec=${stopS}`,
    'UMask=0077',
    'NoNewPrivileges=yes',
    ...(isSystem ? confinement(unit) : []),
    '',
    '[Install]',
    `WantedBy=${isSystem ? 'multi-user.target' : 'default.target'}`,
  ];
  return `${lines.join('\n')}\n`;
}

/** Returns the sandboxing directives, which a user's own manager may lack the permissions to apply. */
function confinement({ owner, home, dataDir, workspaces }: ServiceUnit): readonly string[] {
  return [
    `User=${owner.uid}`,
    `Group=${owner.gid}`,
    'ProtectSystem=strict',
    `ReadWritePaths=${[home, dataDir, ...workspaces].map(quote).join(' ')}`,
    'PrivateTmp=yes',
    'PrivateDevices=yes',
    'ProtectKernelTunables=yes',
    'ProtectKernelModules=yes',
    'ProtectControlGroups=yes',
    'RestrictSUIDSGID=yes',
    'LockPersonality=yes',
  ];
}

/** Quotes one word of a unit file, where `%` and `$` have a meaning even inside quotes. */
function quote(word: string): string {
  const escaped = word.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%');
  return `"${escaped.replaceAll('$', '$$$$')}"`;
}

/** Returns where systemd looks for the unit. */
export function unitPath(isSystem: boolean, configHome: string): string {
  return isSystem ? `/etc/systemd/system/${serviceName}` : join(configHome, 'systemd/user', serviceName);
}

/** A numeric user and group. */
type Owner = { readonly uid: number; readonly gid: number };

type Places = {
  readonly dataDir: string;
  readonly home: string;
  /** The user who ran the command, with or without `sudo`. */
  readonly caller: Owner;
};

/**
 * Returns the user that the machine's service runs as: the owner of the data; if there is none yet, the owner of the
 * home, then the user running the command. Throws ParleyError `invalid_input` if only root is left.
 */
export function findOwner({ dataDir, home, caller }: Places): Owner {
  if (existsSync(dataDir)) return ownerOf(dataDir);
  const owner = [...(existsSync(home) ? [ownerOf(home)] : []), caller].find(({ uid }) => uid !== 0);
  if (owner !== undefined) return owner;
  throw new ParleyError(
    'invalid_input',
    `Parley would run as root. Give its data to another user, then try again: install -d -m 700 -o <user> -g <group> ${dataDir}\nTo run as root anyway, start it once by hand: ${parleyCommand} start`,
  );
}

function ownerOf(path: string): Owner {
  const { uid, gid } = statSync(path);
  return { uid, gid };
}

/** Creates a folder and its parents; those that root creates are given to the owner, who couldn't write otherwise. */
export function makeFolderFor(owner: Owner, path: string): void {
  const first = mkdirSync(path, { recursive: true, mode: 0o700 });
  if (first === undefined || process.getuid?.() !== 0) return;
  for (let made = path; ; made = dirname(made)) {
    chownSync(made, owner.uid, owner.gid);
    if (made === first || made === dirname(made)) return;
  }
}

/** Returns a user's home, which `sudo` may have replaced by root's; undefined if the machine doesn't know the user. */
export function userHome({ uid }: Owner): string | undefined {
  const { stdout } = spawnSync('getent', ['passwd', String(uid)], { encoding: 'utf8' });
  return stdout?.trim().split(':')[5] || undefined;
}
