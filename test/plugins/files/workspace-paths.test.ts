/** Threat 5: whatever path the model writes, nothing outside the workspace is read, listed or changed. */
import { execFile } from 'node:child_process';
import { link, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { shareOf } from '../../support/turn.ts';
import { type AWorkspace, aWorkspace } from './a-workspace.ts';

const canary = 'CANARY-7f3a';
let files: AWorkspace;

beforeEach(async () => {
  files = await aWorkspace();
  const { workspace, outside } = files;
  await mkdir(join(workspace, 'sub/deep'), { recursive: true });
  await writeFile(join(workspace, 'inside.txt'), 'inside');
  await writeFile(join(outside, 'secret.txt'), canary);
  // Shows up in any listing of this folder, and appears in no path below.
  await writeFile(join(outside, `${canary}.txt`), '');
  await symlink(outside, join(workspace, 'link'));
  await symlink('../outside', join(workspace, 'relative-link'));
  await symlink('../../outside', join(workspace, 'sub/up'));
  await symlink('/', join(workspace, 'root'));
  await symlink('/proc/self', join(workspace, 'proc'));
  await symlink(join(outside, 'secret.txt'), join(workspace, 'file-link'));
  await symlink(join(outside, 'made.txt'), join(workspace, 'dangling'));
  await symlink('sub', join(workspace, 'inner-link'));
});

afterEach(() => files.remove());

/** Every way of writing a path that has ever escaped from somewhere. */
function hostilePaths({ workspace, outside }: AWorkspace): string[] {
  const ups = [
    '..',
    '../..',
    '../../..',
    './..',
    'sub/../..',
    'sub/deep/../../..',
    './/..//',
    'sub/./../..',
    'x/../..',
  ];
  const names = [
    'outside/secret.txt',
    'outside',
    'outside/made.txt',
    'outside/./secret.txt',
    'outside//secret.txt',
  ];
  const climbs = ups.flatMap((up) => names.map((name) => `${up}/${name}`));
  const links = [
    'root/tmp',
    'sub/../link',
    './link',
    'link',
    'relative-link',
    'sub/up',
    'inner-link/up',
    'inner-link/../link',
    'root/proc/self/cwd',
    'proc/cwd',
    'proc/root',
  ];
  const throughLinks = links.flatMap((link) =>
    [
      '',
      '/',
      '/secret.txt',
      '/made.txt',
      '/sub/made.txt',
      '/../outside/secret.txt',
      '/.',
      '/..',
      `${outside}/secret.txt`,
    ].map((rest) => link + rest),
  );
  const absolute = [
    outside,
    `${outside}/secret.txt`,
    `${outside}/made.txt`,
    `/${outside}/secret.txt`,
    `//${outside}/secret.txt`,
    `/.${outside}/secret.txt`,
    `/proc/self/root${outside}/secret.txt`,
    `/proc/self/cwd/../..${outside}/secret.txt`,
    '/proc/self/environ',
    '/proc/self/fd/0',
    '/dev/zero',
    '/dev/stdin',
    '/etc/passwd',
    '/',
    `${workspace}/../outside/secret.txt`,
    `${workspace}/../outside/made.txt`,
    `${workspace}/sub/../../outside/secret.txt`,
    `${workspace}x/made.txt`,
    `${workspace}/link/secret.txt`,
    `${workspace}/link/made.txt`,
    `${workspace}/..`,
    `${workspace}/../workspace-2/made.txt`,
  ];
  const encodings = [
    '..%2foutside%2fsecret.txt',
    '%2e%2e/outside/secret.txt',
    '..%c0%afoutside/secret.txt',
    '..\\outside\\secret.txt',
    '\\\\?\\UNC\\outside',
    '..;/outside/secret.txt',
    '．．/outside/secret.txt',
    '..／outside／secret.txt',
    '..∕outside∕secret.txt',
    '\u202e../outside/secret.txt',
    '../outside/secret.txt\0',
    'inside.txt\0/../../outside/secret.txt',
    '../outside/secret.txt ',
    ' ../outside/secret.txt',
    '../outside/secret.txt\n',
    '..\n/outside',
    '~/secret.txt',
    '~root/secret.txt',
    '$HOME/secret.txt',
    '$PWD/../outside/secret.txt',
    '`pwd`/x',
    'file:///etc/passwd',
    'file://../outside/secret.txt',
    'C:\\Windows\\win.ini',
    'CON',
    '.../outside/secret.txt',
    '....//outside/secret.txt',
    '..././outside/secret.txt',
    'link\0',
    '\ud800/secret.txt',
    '../outside/secret.txt/',
    `${'../'.repeat(200)}etc/passwd`,
    `${'a/../'.repeat(900)}../outside/secret.txt`,
    `${'sub/'.repeat(70)}x`,
    'a'.repeat(300),
    'a'.repeat(5000),
  ];
  const linksThemselves = [
    'file-link',
    'dangling',
    './file-link',
    'sub/../file-link',
    'dangling/',
    'file-link/.',
    'file-link/x',
  ];
  return [...climbs, ...throughLinks, ...absolute, ...encodings, ...linksThemselves];
}

/** Different spellings of the same path: a file system may treat them as equal when a check of the text doesn't. */
const rewritings: readonly ((path: string, workspace: string) => string)[] = [
  (path) => `./${path}`,
  (path) => `${path}/`,
  (path) => `${path}/.`,
  (path) => `sub/../${path}`,
  (path) => `inner-link/../${path}`,
  (path) => `sub/deep/../../${path}`,
  (path) => path.replaceAll('/', '//'),
  (path) => path.replaceAll('/', '/./'),
  (path) => path.replaceAll('..', 'sub/../..'),
  (path) => path.replaceAll('/', '\\'),
  (path) => path.replaceAll('.', '%2e'),
  (path) => path.replaceAll('..', '.\u200b.'),
  (path) => path.normalize('NFKC'),
  (path, workspace) => `${workspace}/${path}`,
  (path, workspace) => `${workspace}//.//${path}`,
];

async function picture(folder: string): Promise<string> {
  const names = (await readdir(folder, { recursive: true })).sort();
  const contents = await Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      return (await stat(path)).isFile() ? `${name}=${await readFile(path, 'utf8')}` : name;
    }),
  );
  return contents.join('\n');
}

describe.runIf(process.platform === 'linux')('paths of the file tools (threat 5)', () => {
  it('reaches nothing outside the workspace, by 2,000 forms of paths and every tool', {
    timeout: 900_000,
  }, async () => {
    const plain = new Set(hostilePaths(files));
    const rewritten = [...plain].flatMap((path) =>
      rewritings.map((rewrite) => rewrite(path, files.workspace)),
    );
    const others = [...new Set(rewritten)].filter((path) => !plain.has(path));
    expect(plain.size).toBeGreaterThan(200);
    expect(plain.size + others.length).toBeGreaterThan(2_000);
    const paths = [...plain, ...shareOf(others, 100)];
    const before = await picture(files.outside);
    const around = (await readdir(files.folder)).sort();
    const calls: readonly ((path: string) => readonly [string, object])[] = [
      (path) => ['read', { path }],
      (path) => ['write', { path, content: 'written' }],
      (path) => ['edit', { path, oldText: canary, newText: 'edited' }],
      (path) => ['list', { path }],
      (path) => ['glob', { path, pattern: '**' }],
      (path) => ['glob', { pattern: path.slice(0, 400) }],
      (path) => ['grep', { path, pattern: 'CANARY|root:' }],
    ];
    const leaks: string[] = [];
    for (const path of paths) {
      for (const makeCall of calls) {
        const [name, args] = makeCall(path);
        const output = await files.call(name, args).catch((error: Error) => error.message);
        const isLeak = output.includes(canary) || /^root:|PATH=/m.test(output);
        if (isLeak) leaks.push(`${name} ${path}: ${output}`);
        if (!path.includes('/proc') && output.includes('/proc'))
          leaks.push(`${name} ${path} tells of the host: ${output}`);
      }
    }
    expect(leaks).toEqual([]);
    expect(await picture(files.outside)).toBe(before);
    expect((await readdir(files.folder)).sort()).toEqual(around);
  });

  it('accepts all honest forms of workspace paths', async () => {
    const { workspace } = files;
    for (const path of [
      'inside.txt',
      './inside.txt',
      'sub/../inside.txt',
      `${workspace}/inside.txt`,
      'sub//..//inside.txt',
    ]) {
      expect(await files.call('read', { path })).toContain('inside');
    }
    await files.call('write', { path: 'new/folders/über uns.md', content: 'x' });
    expect(await readFile(join(workspace, 'new/folders/über uns.md'), 'utf8')).toBe('x');
  });

  it.each([
    ['read', { path: 'file-link' }, 'file-link is a symbolic link'],
    ['read', { path: 'link/secret.txt' }, 'link is a symbolic link'],
    ['read', { path: 'inner-link' }, 'inner-link is a symbolic link'],
    ['write', { path: 'dangling', content: '' }, 'dangling is a symbolic link'],
    ['read', { path: '../outside/secret.txt' }, '../outside/secret.txt is outside the workspace'],
    ['read', { path: '/etc/passwd' }, '/etc/passwd is outside the workspace'],
    ['read', { path: 'nothing' }, "nothing doesn't exist"],
    ['read', { path: 'sub' }, 'sub is a folder'],
    ['read', { path: 'inside.txt/x' }, "inside.txt isn't a folder"],
    ['write', { path: 'sub', content: '' }, 'sub is a folder'],
    ['write', { path: 'inside.txt/x', content: '' }, "inside.txt isn't a folder"],
    ['write', { path: '.', content: '' }, '. is the workspace itself'],
    ['list', { path: 'inside.txt' }, "inside.txt isn't a folder"],
  ])('fails %s %j with a sentence for the model', async (tool, args, sentence) => {
    await expect(files.call(tool, args)).rejects.toThrow(sentence);
  });

  it('neither hangs nor answers on FIFOs and sockets', async () => {
    await promisify(execFile)('mkfifo', [join(files.workspace, 'pipe')]);
    await expect(files.call('read', { path: 'pipe' })).rejects.toThrow("pipe isn't a regular file");
    await expect(files.call('write', { path: 'pipe', content: 'x' })).rejects.toThrow(
      "pipe isn't a regular file",
    );
    expect(await files.call('grep', { pattern: 'inside' })).toBe('inside.txt:1: inside');
    expect(await files.call('list', {})).toContain('pipe (special)');
  });

  it('neither reads nor writes a file with a further hard link', async () => {
    await link(join(files.outside, 'secret.txt'), join(files.workspace, 'hard.txt'));
    const calls: readonly (readonly [string, object])[] = [
      ['read', {}],
      ['write', { content: 'x' }],
      ['edit', { oldText: canary, newText: '' }],
    ];
    for (const [tool, args] of calls) {
      await expect(files.call(tool, { path: 'hard.txt', ...args })).rejects.toThrow('further hard links');
    }
    for (const path of ['.', 'hard.txt']) {
      const found = await files.call('grep', { pattern: '.', path });
      expect(found).not.toContain(canary);
      expect(found).toContain('some files could not be read');
    }
    expect(await readFile(join(files.outside, 'secret.txt'), 'utf8')).toBe(canary);
  });

  it('writes to no file that other programs run unasked', async () => {
    const before = await entriesOf(files.workspace);
    for (const path of runByOthers) {
      await expect(files.call('write', { path, content: 'x' }), path).rejects.toThrow('without being asked');
    }
    expect(await entriesOf(files.workspace)).toEqual(before);
    await mkdir(join(files.workspace, '.git/hooks'), { recursive: true });
    await writeFile(join(files.workspace, '.git/hooks/pre-commit'), 'old');
    await expect(
      files.call('edit', { path: '.git/hooks/pre-commit', oldText: 'old', newText: 'new' }),
    ).rejects.toThrow('without being asked');
  });

  it("writes into no git repository, whatever its folder's name", async () => {
    const at = (path: string) => join(files.workspace, path);
    await mkdir(at('bare/objects'), { recursive: true });
    await mkdir(at('trees/one'), { recursive: true });
    for (const path of ['bare/HEAD', 'bare/config', 'trees/one/HEAD', 'trees/one/commondir'])
      await writeFile(at(path), 'old');
    const before = await entriesOf(files.workspace);
    for (const path of ['bare/config', 'bare/hooks/update', 'bare/new/x', 'trees/one/config']) {
      await expect(files.call('write', { path, content: 'x' }), path).rejects.toThrow('without being asked');
    }
    expect(await entriesOf(files.workspace)).toEqual(before);
    expect(await readFile(at('bare/config'), 'utf8')).toBe('old');
    await files.call('write', { path: 'trees/x', content: 'x' });
  });

  it('writes files that run only when somebody runs the project', async () => {
    for (const path of runByThePerson) {
      await files.call('write', { path, content: path });
      expect(await files.call('read', { path })).toContain(path);
    }
  });
});

/** Lists everything below a folder. With `withFileTypes`, `readdir` follows no links, and one here leads to `/`. */
async function entriesOf(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.map(({ parentPath, name }) => join(parentPath, name)).sort();
}

const runByOthers: readonly string[] = [
  ...['.git', '.git/config', '.git/hooks/pre-commit', 'sub/.git/x', '.GIT/config', '.g\u200cit/config'],
  ...['.git./config', '.git /config', '.git::$INDEX_ALLOCATION/config', 'git~1/config', '.\uff47it/config'],
  ...['bare.git/hooks/update', 'sub/HEAD', '.husky/pre-push', '.githooks/x', './sub/../.git/config'],
  ...['.envrc', '.env', '.env.local', '.npmrc', 'sub/.yarnrc.yml', '.vscode/tasks.json', '.idea/x.xml'],
  ...['.github/workflows/x.yml', 'a.code-workspace', '.bashrc', '.config/systemd/user/x.service'],
  ...['.ssh/authorized_keys', 'crontab', '.claude/settings.json', 'hooks/x.js', 'Skills/x/SKILL.md'],
  ...['plugins/x.ts', 'parley.config.json', 'sitecustomize.py', 'lib/x.pth'],
  // An unknown hidden name may be some program's settings.
  ...[
    '.rc-of-a-program-to-come',
    '.tool-to-come/x',
    'sub/.bash_completion',
    '.HGRC',
    'envrc~1',
    'ENVRC~1.TXT',
  ],
  ...[
    'mise.toml',
    'mise.local.toml',
    'lefthook-local.yml',
    'Jenkinsfile',
    'azure-pipelines.yaml',
    'flake.nix',
  ],
  ...['venv/bin/activate', 'x.desktop', 'bunfig.toml', 'compose.override.yml', 'opencode.json'],
];

const runByThePerson: readonly string[] = [
  ...['src/hooks/use.ts', '.gitignore', '.gitattributes', '.env.example', 'package.json', 'Makefile'],
  ...['docs/head.md', 'activate.ts', 'a~b.txt', '.well-known/x.json', 'compose.yml', 'src/mise.ts'],
];
