/** The systemd unit of a gateway on this machine, as text, so that it can be reviewed before it takes effect. */
import { join } from 'node:path';

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
