import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ParleyError } from '#contracts/errors.ts';
import type { Config } from '../config/config.ts';
import { homeFolder, servicePlaces, userConfigFolder } from '../config/environment.ts';
import { loadConfig } from '../config/load-config.ts';
import type { ExitCode } from './exit-code.ts';
import { renderUnit, serviceName, unitPath } from './service-unit.ts';

export type ServiceOptions = { readonly isSystem: boolean };

/** Writes the unit, starts it and lets it start with the machine. `prints`: shows the unit and changes nothing. */
export async function runServiceInstall({
  isSystem,
  prints,
}: ServiceOptions & { readonly prints: boolean }): Promise<ExitCode> {
  const config = loadConfig();
  const text = unitFor(config, isSystem);
  if (prints) {
    process.stdout.write(text);
    return 0;
  }
  requireSystemd();
  const path = unitPath(isSystem, userConfigFolder());
  if (isSystem && process.getuid?.() !== 0)
    throw new ParleyError(
      'invalid_input',
      `Only root writes ${path}. Type: sudo parley service install --system`,
    );
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o644 });
  const control = controlOf(isSystem);
  control('daemon-reload');
  control('enable', '--now', serviceName);
  // Else a user's services end when the last session does.
  const stays = isSystem || spawnSync('loginctl', ['enable-linger'], { stdio: 'ignore' }).status === 0;
  const lines = [
    `Installed ${path}. Parley runs, and starts with the machine.`,
    ...(stays ? [] : ['It ends when you sign out, until somebody types: sudo loginctl enable-linger $USER']),
    ...unseen(config),
    'See: parley service status, parley logs -f',
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
  return 0;
}

/** Shows what systemd says of the service; the exit code is systemd's, 0 when it runs. */
export async function runServiceStatus(): Promise<ExitCode> {
  const { isSystem } = installed();
  const { status } = spawnSync('systemctl', [...scope(isSystem), 'status', '--no-pager', serviceName], {
    stdio: 'inherit',
  });
  return status === 0 ? 0 : 1;
}

/** Shows the journal of the service; `follows`: until it is interrupted. */
export async function runLogs({ follows }: { readonly follows: boolean }): Promise<ExitCode> {
  const { isSystem } = installed();
  const unit = isSystem ? `--unit=${serviceName}` : `--user-unit=${serviceName}`;
  const args = [unit, '--output=cat', '--lines=200', ...(follows ? ['--follow'] : ['--no-pager'])];
  const { status } = spawnSync('journalctl', args, { stdio: 'inherit' });
  return status === 0 ? 0 : 1;
}

/** Stops the service and removes its unit; the data stays. */
export async function runServiceUninstall(): Promise<ExitCode> {
  const { isSystem, path } = installed();
  const control = controlOf(isSystem);
  control('disable', '--now', serviceName);
  rmSync(path);
  control('daemon-reload');
  process.stdout.write(`Removed ${path}. The data stays in ${loadConfig().dataDir}.\n`);
  return 0;
}

function unitFor({ dataDir, shutdownMs }: Config, isSystem: boolean): string {
  const home = homeFolder();
  const owner = statSync(existsSync(dataDir) ? dataDir : existsSync(home) ? home : '/');
  return renderUnit({
    isSystem,
    node: process.execPath,
    program: join(import.meta.dirname, '../../bin/parley.mjs'),
    home: existsSync(home) ? home : dirname(dataDir),
    dataDir,
    owner,
    places: servicePlaces(),
    // Longer than Parley's own deadline, so that a running tool is handed over, not killed.
    stopS: Math.ceil(shutdownMs / 1000) + 5,
  });
}

/** Variables of this shell that no file sets: the service would not see them. */
function unseen({ variables, envFiles }: Config): readonly string[] {
  const inFiles = envFiles.flatMap(({ names }) => names);
  const places = Object.keys(servicePlaces());
  const lost = variables.filter((name) => !inFiles.includes(name) && !places.includes(name));
  return lost.length === 0
    ? []
    : [
        `Set in this shell only, so the service doesn't see them: ${lost.join(', ')}. Put them into ${join(homeFolder(), '.env')}, then: parley service install`,
      ];
}

function installed(): { readonly isSystem: boolean; readonly path: string } {
  requireSystemd();
  for (const isSystem of [false, true]) {
    const path = unitPath(isSystem, userConfigFolder());
    if (existsSync(path)) return { isSystem, path };
  }
  throw new ParleyError(
    'invalid_input',
    'There is no service. Install it: parley service install. Without it, Parley logs to the terminal it was started in.',
  );
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

const scope = (isSystem: boolean) => (isSystem ? [] : ['--user']);

/** Its folder is there when systemd runs the machine (sd_booted(3)); the programs alone may be in a container too. */
function requireSystemd(): void {
  if (existsSync('/run/systemd/system')) return;
  throw new ParleyError(
    'invalid_input',
    "systemd doesn't run here. In Docker: docker compose logs -f parley. Elsewhere, let your own supervisor run: parley start",
  );
}
