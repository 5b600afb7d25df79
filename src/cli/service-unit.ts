/** The systemd unit of a gateway on this machine: text, so that it can be read before it counts. */
import { join } from 'node:path';

export type ServiceUnit = {
  /** The whole machine's service, or one of a user alone. */
  readonly isSystem: boolean;
  /** Absolute path of Node.js. */
  readonly node: string;
  /** Absolute path of bin/parley.mjs. */
  readonly program: string;
  readonly home: string;
  readonly dataDir: string;
  /** Folders of agents' files outside of both. */
  readonly workspaces: readonly string[];
  /** Only for the machine's service: numeric user and group, who own the data. */
  readonly owner: { readonly uid: number; readonly gid: number };
  /** Variables that name places; secrets stay in `.env`. */
  readonly places: Readonly<Record<string, string>>;
  /** The time that a stop may take, seconds. */
  readonly stopS: number;
};

export const serviceName = 'parley.service';

/** Writes the unit. */
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
    // A directive of one path: quotes would belong to it.
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

/** A user's own manager may lack the right to set these up. */
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

/** One word of a unit file: `%` and `$` mean something there, also inside quotes. */
function quote(word: string): string {
  const escaped = word.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%');
  return `"${escaped.replaceAll('$', '$$$$')}"`;
}

/** Where systemd looks for it. */
export function unitPath(isSystem: boolean, configHome: string): string {
  return isSystem ? `/etc/systemd/system/${serviceName}` : join(configHome, 'systemd/user', serviceName);
}
