import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
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
import { findOwner, makeFolderFor, userHome } from './service-owner.ts';
import { renderUnit, serviceName, unitPath } from './service-unit.ts';

type JsonOption = { readonly asJson: boolean };
type InstallOptions = { readonly isSystem: boolean; readonly prints: boolean };

/** Writes the unit, starts it and enables it at boot. `prints`: only shows the unit and changes nothing. */
export async function installService({ isSystem, prints }: InstallOptions): Promise<CommandOutput> {
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
