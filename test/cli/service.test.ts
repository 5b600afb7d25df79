import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { renderUnit, type ServiceUnit, serviceName, unitPath } from '../../src/cli/service-unit.ts';
import { runParley } from './run-parley.ts';

const unit: ServiceUnit = {
  isSystem: true,
  node: process.execPath,
  program: join(import.meta.dirname, '../../bin/parley.mjs'),
  home: '/srv/parley',
  dataDir: '/srv/the data',
  owner: { uid: 1000, gid: 1001 },
  places: { PARLEY_DATA_DIR: '/srv/the data' },
  stopS: 20,
};

it('runs as the owner of the data, may write there alone, and reloads by SIGHUP', () => {
  const text = renderUnit(unit);
  expect(text).toContain(
    'User=1000\nGroup=1001\nProtectSystem=strict\nReadWritePaths="/srv/parley" "/srv/the data"\n',
  );
  expect(text).toContain('ExecReload=/bin/kill -HUP $MAINPID\n');
  expect(text).toContain('Environment="PARLEY_DATA_DIR=/srv/the data"\n');
  expect(text).toContain('WantedBy=multi-user.target');
  const own = renderUnit({ ...unit, isSystem: false });
  expect(own).not.toContain('User=');
  expect(own).toContain('WantedBy=default.target');
});

it('writes what systemd would read as something else so that it reads it as it is', () => {
  const odd = renderUnit({ ...unit, node: '/opt/50% "of" $HOME\\node' });
  expect(odd).toContain('ExecStart="/opt/50%% \\"of\\" $$HOME\\\\node"');
});

it('goes where systemd looks', () => {
  expect(unitPath(true, '/home/x/.config')).toBe('/etc/systemd/system/parley.service');
  expect(unitPath(false, '/home/x/.config')).toBe('/home/x/.config/systemd/user/parley.service');
});

it.runIf(existsSync('/usr/bin/systemd-analyze'))('has nothing that systemd objects to', () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-unit-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const path = join(folder, serviceName);
  for (const isSystem of [true, false]) {
    writeFileSync(path, renderUnit({ ...unit, isSystem, home: folder, dataDir: folder }));
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', path], {
      encoding: 'utf8',
    });
    expect(stderr.split('\n').filter((line) => line.includes(serviceName))).toEqual([]);
    expect(status).toBe(0);
  }
});

it.skipIf(existsSync('/run/systemd/system'))(
  'says where systemd does not run, and shows the unit all the same',
  async () => {
    const { code, stderr } = await runParley(['service', 'install']);
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("systemd doesn't run here"),
    });
    const { stdout } = await runParley(['service', 'install', '--print']);
    expect(stdout).toContain('[Service]');
  },
);
