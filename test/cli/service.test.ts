import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  assertStaysUp,
  findOwner,
  makeFolderFor,
  renderUnit,
  type ServiceUnit,
  serviceName,
  unitPath,
  userHome,
} from '../../src/cli/service.ts';
import { aFolder } from '../support/own-folder.ts';
import { runParley } from './run-parley.ts';

const unit: ServiceUnit = {
  isSystem: true,
  node: process.execPath,
  program: join(import.meta.dirname, '../../bin/parley.mjs'),
  home: '/srv/parley',
  dataDir: '/srv/the data',
  workspaces: ['/mnt/files'],
  owner: { uid: 1000, gid: 1001 },
  places: { PARLEY_DATA_DIR: '/srv/the data' },
  stopS: 20,
};

it("runs as the data's owner, writes only to data and workspaces, and reloads by SIGHUP", () => {
  const text = renderUnit(unit);
  expect(text).toContain(
    'User=1000\nGroup=1001\nProtectSystem=strict\nReadWritePaths="/srv/parley" "/srv/the data" "/mnt/files"\n',
  );
  expect(text).toContain('ExecReload=/bin/kill -HUP $MAINPID\n');
  expect(text).toContain('Environment="PARLEY_DATA_DIR=/srv/the data"\n');
  expect(text).toContain('WantedBy=multi-user.target');
  const own = renderUnit({ ...unit, isSystem: false });
  expect(own).not.toContain('User=');
  expect(own).toContain('WantedBy=default.target');
});

it('escapes what systemd would interpret', () => {
  const odd = renderUnit({ ...unit, node: '/opt/50% "of" $HOME\\node' });
  expect(odd).toContain('ExecStart="/opt/50%% \\"of\\" $$HOME\\\\node"');
});

it('writes the unit where systemd looks for it', () => {
  expect(unitPath(true, '/home/x/.config')).toBe('/etc/systemd/system/parley.service');
  expect(unitPath(false, '/home/x/.config')).toBe('/home/x/.config/systemd/user/parley.service');
});

const isRoot = process.getuid?.() === 0;
const ada = { uid: 1000, gid: 1001 };
const root = { uid: 0, gid: 0 };
it.runIf(isRoot)(
  'runs as the owner of the data or the clone, or as the sudo user, and creates the folder',
  () => {
    const clone = aFolder();
    chownSync(clone, ada.uid, ada.gid);
    const dataDir = join(clone, 'deep/data');
    expect(findOwner({ dataDir, home: clone, caller: root })).toEqual(ada);
    makeFolderFor(ada, dataDir);
    for (const path of [dataDir, join(clone, 'deep')])
      expect(statSync(path), path).toMatchObject({ ...ada, mode: 0o40700 });

    // As in a package: neither its home nor its data exists yet.
    const home = join(aFolder(), 'nowhere');
    expect(findOwner({ dataDir: join(home, 'data'), home, caller: ada })).toEqual(ada);
    const ofRoot = { dataDir: join(home, 'data'), home, caller: root };
    expect(() => findOwner(ofRoot)).toThrow('Parley would run as root');
    mkdirSync(ofRoot.dataDir, { recursive: true });
    expect(findOwner(ofRoot)).toEqual(root);
  },
);

it.runIf(isRoot && existsSync('/usr/bin/getent'))('finds the home folder that sudo hides', () => {
  expect(userHome({ uid: 0, gid: 0 })).toBe('/root');
  expect(userHome({ uid: 4_000_000_001, gid: 0 })).toBeUndefined();
});

it('reports a service that does not stay up', async () => {
  const states = ['active', 'active', 'activating'];
  const clock = { wait: async () => {} };
  await expect(assertStaysUp(() => states.shift() ?? '', clock)).rejects.toThrow(
    "doesn't stay up (systemd: activating)",
  );
  await assertStaysUp(() => 'active', clock);
});

it.runIf(existsSync('/usr/bin/systemd-analyze'))('writes a unit that systemd accepts', () => {
  const folder = aFolder();
  const path = join(folder, serviceName);
  for (const isSystem of [true, false]) {
    const places = { home: folder, dataDir: folder, workspaces: [folder] };
    writeFileSync(path, renderUnit({ ...unit, isSystem, ...places }));
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', path], {
      encoding: 'utf8',
    });
    expect(stderr.split('\n').filter((line) => line.includes(serviceName))).toEqual([]);
    expect(status).toBe(0);
  }
});

it.skipIf(existsSync('/run/systemd/system'))(
  'says that systemd does not run here, but still prints the unit',
  async () => {
    const { code, stderr } = await runParley(['service', 'install']);
    // Also in a container that isn't Parley's own image.
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: "systemd doesn't run here. Let your own supervisor run: npm start\n",
    });
    const { stdout } = await runParley(['service', 'install', '--print']);
    expect(stdout).toContain('[Service]');
    const printed = await runParley(['service', 'install', '--print', '--json']);
    expect(JSON.parse(printed.stdout)).toEqual({
      path: expect.stringMatching(/parley\.service$/),
      unit: stdout,
    });
  },
);
