import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { chmod, mkdir, open, readdir, readFile, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Disk } from '../../../plugins/files/disk.ts';
import { createFilesPlugin } from '../../../plugins/files/index.ts';
import { createTimeSlice } from '../../../plugins/files/search-files.ts';
import { openWorkspace } from '../../../plugins/files/workspace-files.ts';
import { createBootstrapFiles } from '../../../src/agent/bootstrap-files.ts';
import { createPluginHost } from '../../../src/plugin-host/plugin-host.ts';
import { DiskGate, workspaceDisks } from '../../../src/processes/disk-gate.ts';
import { countTurns, holdLoop } from '../../support/loop-turns.ts';
import { noHooks } from '../../support/no-hooks.ts';
import { nothingToSettle } from '../../support/nothing-to-settle.ts';
import { patienceMs } from '../../support/patience.ts';
import { recordingLog } from '../../support/silent-log.ts';
import { type AWorkspace, aWorkspace } from './a-workspace.ts';

let files: AWorkspace;

beforeEach(async () => {
  files = await aWorkspace();
});

afterEach(() => files.remove());

async function put(path: string, content: string | Uint8Array): Promise<void> {
  const full = join(files.workspace, path);
  await mkdir(join(full, '..'), { recursive: true });
  await writeFile(full, content);
}

const contentOf = (path: string) => readFile(join(files.workspace, path), 'utf8');

describe.runIf(process.platform === 'linux')('a workspace whose disk hangs', () => {
  it('limits a hanging disk to two threads, fails with advice and recovers when it answers', async () => {
    const gate = new DiskGate({ most: 3, maxPerItem: 2, patienceMs: 1000 });
    await put('AGENTS.md', 'rules');
    const prompt = createBootstrapFiles({ workspace: files.workspace, disks: gate });
    const rules = [{ name: 'AGENTS.md', text: 'rules' }];
    expect(await prompt.read()).toEqual(rules);
    // Opening a pipe without a writer occupies a pool thread and doesn't return, as on a disk that is gone.
    const pipe = join(files.outside, 'pipe');
    await promisify(execFile)('mkfifo', [pipe]);
    const hung = Array.from({ length: 6 }, () =>
      new Disk(files.workspace, gate).open(pipe, constants.O_RDONLY),
    );
    const silence = "The workspace's disk isn't responding";
    await Promise.all(hung.map((call) => expect(call).rejects.toThrow(silence)));
    await expect(openWorkspace(files.workspace, gate)).rejects.toThrow(silence);
    expect(await prompt.read()).toEqual(rules);
    await (await openWorkspace(files.outside, gate))[Symbol.asyncDispose]();
    await writeFile(join(files.outside, 'data'), 'kept');
    expect(await readFile(join(files.outside, 'data'), 'utf8')).toBe('kept');
    await (await open(pipe, 'w')).close();
    await vi.waitFor(
      async () => {
        await using again = await openWorkspace(files.workspace, gate);
        const { bytes } = await again.read('AGENTS.md', {
          maxBytes: 100,
          signal: new AbortController().signal,
        });
        expect(bytes.toString()).toBe('rules');
      },
      { timeout: patienceMs },
    );
  });
});

describe.runIf(process.platform === 'linux')('file tools', () => {
  describe('read', () => {
    it('numbers lines and shows the requested range', async () => {
      await put('a.txt', 'one\ntwo\nthree\nfour\n');
      expect(await files.call('read', { path: 'a.txt' })).toBe(
        '     1\tone\n     2\ttwo\n     3\tthree\n     4\tfour',
      );
      expect(await files.call('read', { path: 'a.txt', fromLine: 2, lines: 2 })).toBe(
        '     2\ttwo\n     3\tthree\n(lines 4 to 4 follow: read again with fromLine 4)',
      );
      expect(await files.call('read', { path: 'a.txt', fromLine: 9 })).toBe('(the file has 4 lines)');
    });

    it('shows a long file in pieces under 32 KB without losing a line', async () => {
      const lines = Array.from({ length: 3000 }, (_, n) => `line ${n} ${'ä'.repeat(20)}`);
      await put('long.txt', lines.join('\n'));
      const seen: string[] = [];
      for (let fromLine = 1; fromLine <= 3000; ) {
        const text = await files.call('read', { path: 'long.txt', fromLine });
        expect(Buffer.byteLength(text)).toBeLessThan(32_768);
        const shown = text.split('\n').filter((line) => line.includes('\t'));
        seen.push(...shown.map((line) => line.slice(line.indexOf('\t') + 1)));
        fromLine += shown.length;
      }
      expect(seen).toEqual(lines);
    });

    it('says that a file is empty, binary, not UTF-8 or too large instead of showing it', async () => {
      await put('empty.txt', '');
      await put('binary', new Uint8Array([137, 80, 78, 71, 0, 1]));
      await put('latin1.txt', new Uint8Array([0x66, 0xfc, 0x72]));
      await put('large.txt', 'x'.repeat(2_097_153));
      expect(await files.call('read', { path: 'empty.txt' })).toBe('(the file is empty)');
      await expect(files.call('read', { path: 'binary' })).rejects.toThrow(
        'binary is a binary file (6 bytes)',
      );
      await expect(files.call('read', { path: 'latin1.txt' })).rejects.toThrow("latin1.txt isn't UTF-8 text");
      await expect(files.call('read', { path: 'large.txt' })).rejects.toThrow(
        'has 2097153 bytes; the limit is 2097152',
      );
    });

    it('cuts a line of a megabyte and says so', async () => {
      await put('min.js', 'x'.repeat(1_000_000));
      const text = await files.call('read', { path: 'min.js' });
      expect(text.length).toBeLessThan(3000);
      expect(text).toContain('(998000 more characters in this line)');
    });
  });

  describe('write', () => {
    it('creates a file with its folders, then replaces it, and leaves nothing else', async () => {
      expect(await files.call('write', { path: 'a/b/c.txt', content: 'first' })).toBe(
        'Created a/b/c.txt (5 bytes).',
      );
      expect(await files.call('write', { path: 'a/b/c.txt', content: 'zwölf' })).toBe(
        'Replaced a/b/c.txt (6 bytes).',
      );
      expect(await contentOf('a/b/c.txt')).toBe('zwölf');
      expect(await readdir(join(files.workspace, 'a/b'))).toEqual(['c.txt']);
    });

    it('keeps the mode of a replaced file, without special bits', async () => {
      await put('notes.txt', 'echo');
      await chmod(join(files.workspace, 'notes.txt'), 0o4640);
      await files.call('write', { path: 'notes.txt', content: 'echo hi' });
      expect((await stat(join(files.workspace, 'notes.txt'))).mode & 0o7777).toBe(0o640);
    });

    it('makes nothing executable and changes no executable', async () => {
      await files.call('write', { path: 'new.sh', content: '#!/bin/sh' });
      expect((await stat(join(files.workspace, 'new.sh'))).mode & 0o111).toBe(0);
      await put('build.sh', 'echo');
      await chmod(join(files.workspace, 'build.sh'), 0o744);
      await expect(files.call('write', { path: 'build.sh', content: 'rm' })).rejects.toThrow('is executable');
      await expect(files.call('edit', { path: 'build.sh', oldText: 'echo', newText: 'rm' })).rejects.toThrow(
        'is executable',
      );
      expect(await contentOf('build.sh')).toBe('echo');
    });

    it('refuses content that is too large and keeps the old file', async () => {
      await put('a.txt', 'old');
      const content = 'x'.repeat(2_097_153);
      await expect(files.call('write', { path: 'a.txt', content })).rejects.toThrow('the limit is 2097152');
      expect(await contentOf('a.txt')).toBe('old');
    });

    it('keeps the old file and leaves no remains if a write is aborted', async () => {
      await put('a.txt', 'old');
      const signal = AbortSignal.abort();
      await expect(files.call('write', { path: 'a.txt', content: 'new' }, signal)).rejects.toThrow('aborted');
      expect(await readdir(files.workspace)).toEqual(['a.txt']);
      expect(await contentOf('a.txt')).toBe('old');
    });

    it("keeps a person's later changes when a write is repeated after a crash", async () => {
      const call = { path: 'a/plan.txt', content: 'mine' };
      expect(await files.repeat('write', call)).toBe('Created a/plan.txt (4 bytes).');
      expect(await files.repeat('write', call)).toBe('Replaced a/plan.txt (4 bytes).');
      await put('a/plan.txt', 'ours');
      await expect(files.repeat('write', call)).rejects.toThrow(
        'a/plan.txt now contains something else: it may have been written and then changed. Read it',
      );
      expect(await contentOf('a/plan.txt')).toBe('ours');
    });

    it('never shows a reader a half-written file', async () => {
      const [a, b] = ['a'.repeat(500_000), 'b'.repeat(500_000)];
      await put('big.txt', a);
      let isWriting = true;
      const writing = (async () => {
        for (let n = 0; n < 40; n++) await files.call('write', { path: 'big.txt', content: n % 2 ? a : b });
        isWriting = false;
      })();
      const seen = new Set<string>();
      while (isWriting) {
        const content = await contentOf('big.txt');
        seen.add(`${content.length} ${new Set(content).size}`);
      }
      await writing;
      expect([...seen]).toEqual(['500000 1']);
    });
  });

  describe('edit', () => {
    it('replaces exactly the one occurrence, whatever characters it has', async () => {
      await put('a.txt', '\ufeffone\r\ntwo $& $1\r\nthree');
      const edit = { path: 'a.txt', oldText: 'two $& $1', newText: "$` $' $$" };
      expect(await files.call('edit', edit)).toBe('Edited a.txt at line 2.');
      expect(await contentOf('a.txt')).toBe("\ufeffone\r\n$` $' $$\r\nthree");
    });

    it.each([
      ['absent', "doesn't occur in a.txt."],
      ['x', 'occurs more than once in a.txt; include more'],
      ['aa', 'occurs more than once'],
      ['one\ntwo', "doesn't occur in a.txt; its lines end in CR LF."],
      ['three  \nx', 'its first line does, so compare white space'],
    ])('refuses the old text %j and says why', async (oldText, problem) => {
      await put('a.txt', 'x aaa x\none\r\ntwo\nthree  \n  x');
      await expect(files.call('edit', { path: 'a.txt', oldText, newText: 'y' })).rejects.toThrow(problem);
      expect(await contentOf('a.txt')).toBe('x aaa x\none\r\ntwo\nthree  \n  x');
    });

    it('does not overwrite a change made between reading and writing', async () => {
      await put('a.txt', 'old');
      const { signal } = new AbortController();
      await using workspace = await openWorkspace(files.workspace, workspaceDisks);
      const { stamp } = await workspace.read('a.txt', { maxBytes: 100, signal });
      await files.call('write', { path: 'a.txt', content: 'by someone else' });
      await expect(
        workspace.write('a.txt', Buffer.from('mine'), { signal, replaces: stamp }),
      ).rejects.toThrow('a.txt changed since it was read');
      expect(await contentOf('a.txt')).toBe('by someone else');
      expect(await readdir(files.workspace)).toEqual(['a.txt']);
    });
  });

  it('accepts one of several replacements of the same version and reports the conflict to the others', async () => {
    await put('a.txt', 'old');
    const { signal } = new AbortController();
    await using workspace = await openWorkspace(files.workspace, workspaceDisks);
    for (let round = 0; round < 10; round += 1) {
      const { stamp } = await workspace.read('a.txt', { maxBytes: 100, signal });
      const edits = ['one', 'two', 'three', 'four'].map((text) => `${text} ${round}`);
      const ends = await Promise.allSettled(
        edits.map((text) => workspace.write('a.txt', Buffer.from(text), { signal, replaces: stamp })),
      );
      const done = edits.filter((_, index) => ends[index]?.status === 'fulfilled');
      expect(done).toEqual([await contentOf('a.txt')]);
    }
    expect(await readdir(files.workspace)).toEqual(['a.txt']);
  });

  describe('list', () => {
    it('lists folders, files and links by name', async () => {
      await put('b.txt', '');
      await put('a/x', '');
      await put('odd\nname', '');
      await symlink('b.txt', join(files.workspace, 'c'));
      expect(await files.call('list', {})).toBe('a/\nb.txt\nc@\nodd\\x0aname');
      expect(await files.call('list', { path: 'a' })).toBe('x');
    });

    it('says when a list has more entries', async () => {
      await Promise.all(Array.from({ length: 600 }, (_, n) => put(`f${n}`, '')));
      const lines = (await files.call('list', {})).split('\n');
      expect(lines.length).toBe(501);
      expect(lines.at(-1)).toContain('only 500 entries');
    });
  });

  describe('glob', () => {
    beforeEach(async () => {
      for (const path of [
        'a.ts',
        'src/b.ts',
        'src/deep/c.ts',
        'src/deep/d.json',
        'src/[x].md',
        'node_modules/m/e.ts',
        '.git/f.ts',
        'src/+(a).txt',
      ]) {
        await put(path, '');
      }
    });

    it.each([
      ['*.ts', {}, ['a.ts', 'src/b.ts', 'src/deep/c.ts']],
      ['./*.ts', {}, ['a.ts']],
      ['src/*.ts', {}, ['src/b.ts']],
      ['src/**/*.ts', {}, ['src/b.ts', 'src/deep/c.ts']],
      ['**/deep/**', {}, ['src/deep/c.ts', 'src/deep/d.json']],
      ['**/*.{json,md}', {}, ['src/[x].md', 'src/deep/d.json']],
      ['?.ts', {}, ['a.ts', 'src/b.ts', 'src/deep/c.ts']],
      ['[!ab].ts', {}, ['src/deep/c.ts']],
      ['src/[a-b].ts', {}, ['src/b.ts']],
      ['\\[x\\].md', {}, ['src/[x].md']],
      ['+(a).txt', {}, ['src/+(a).txt']],
      ['deep/*.ts', { path: 'src' }, ['src/deep/c.ts']],
      ['deep/*.ts', { path: './src/deep/../' }, ['src/deep/c.ts']],
      ['a.ts.', {}, ['(no file matches)']],
    ])('finds the files that match %s %j', async (pattern, where, found) => {
      expect((await files.call('glob', { pattern, ...where })).split('\n').sort()).toEqual(found.toSorted());
    });
  });

  describe('grep', () => {
    it('shows path, line number and line of matches, and skips binary files', async () => {
      await put('a.txt', 'one\r\ntwo\r\nTwo again\r\n');
      await put('sub/b.md', 'nothing\ntwo');
      await put('binary', new Uint8Array([116, 119, 111, 0]));
      await put('node_modules/x.txt', 'two');
      expect(await files.call('grep', { pattern: 'two$' })).toBe('a.txt:2: two\nsub/b.md:2: two');
      expect(await files.call('grep', { pattern: 'TWO', ignoreCase: true, glob: '*.txt' })).toBe(
        'a.txt:2: two\na.txt:3: Two again',
      );
      expect(await files.call('grep', { pattern: 'two', path: 'sub' })).toBe('sub/b.md:2: two');
      expect(await files.call('grep', { pattern: 'two', path: 'sub/b.md' })).toBe('sub/b.md:2: two');
      expect(await files.call('grep', { pattern: 'absent' })).toBe('(no line matches)');
    });

    it('finds lines that span the pieces in which a file is read', async () => {
      const lines = Array.from({ length: 20_000 }, (_, n) => `${n % 97 === 0 ? 'needle' : 'hay'} ${n} ääää`);
      await put('large.txt', lines.join('\n'));
      const found = (await files.call('grep', { pattern: '^needle \\d+ ää' })).split('\n');
      const expected = lines.flatMap((line, n) =>
        line.startsWith('needle') ? [`large.txt:${n + 1}: ${line}`] : [],
      );
      expect(found.slice(0, 200)).toEqual(expected.slice(0, 200));
      expect(found.at(-1)).toBe('(only the first 200 matches are shown)');
    });

    it.each([
      ['(?=a)', "isn't valid (RE2, no look-around)"],
      ['(a', 'missing closing )'],
      ['((a{0,30}){0,30})$', 'is too large'],
      ['[a-\u{10ffff}]'.repeat(60), 'fewer or smaller ranges'],
      ['a'.repeat(501), 'A pattern must have 1 to 500 characters'],
      ['', 'A pattern must have 1 to 500 characters'],
    ])('refuses the pattern %j and says why', async (pattern, problem) => {
      await expect(files.call('grep', { pattern })).rejects.toThrow(problem);
    });

    it('keeps the event loop free on malicious patterns and text (threat 13)', async () => {
      await put('evil.txt', Array.from({ length: 300 }, () => 'a'.repeat(4000)).join('\n'));
      for (const pattern of ['^(a+)+$!', '(a|aa)+b', '(.*a){20}b', '([a-z]+)*\\d']) {
        const turns = countTurns();
        expect(await files.call('grep', { pattern })).toBe('(no line matches)');
        // A file of 1.2 MB is read and searched in pieces, and other work gets a turn between any two of them.
        expect(turns.end()).toBeGreaterThan(10);
      }
    });

    it.each(['grep', 'glob'])(
      'compiles each pattern of concurrent %s calls in a separate turn',
      async (tool) => {
        const turns = countTurns();
        const calls = Array.from({ length: 20 }, () => files.call(tool, { pattern: '' }));
        const ended = await Promise.allSettled(calls);
        expect(ended.filter(({ status }) => status === 'rejected')).toHaveLength(20);
        expect(turns.end()).toBeGreaterThanOrEqual(20);
      },
    );

    it('says when a search ran out of time, even within one file or one line', async () => {
      await put('lines/a.txt', 'hay\n'.repeat(1_000));
      await put('line/a.txt', 'hay'.repeat(10_000));
      await truncate(join(files.workspace, 'line/a.txt'), 64 * 1024 * 1024);
      let now = 0;
      const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 100));
      for (const path of ['lines', 'line', 'line/a.txt']) {
        const said = await files.call('grep', { pattern: 'needle', path });
        expect(said).toBe('(no line matches)\n(the search ended after 20 s; search a smaller folder)');
      }
      clock.mockRestore();
    });

    it('continues past unreadable folders and says so', async () => {
      await put('a/b.txt', 'needle');
      await put('locked/c.txt', 'needle');
      await mkdir(Buffer.concat([Buffer.from(`${files.workspace}/no-text-`), Buffer.from([0xff])]));
      const unread = '(some folders could not be read)';
      expect(await files.call('glob', { pattern: 'b.txt' })).toBe(`a/b.txt\n${unread}`);
      await chmod(join(files.workspace, 'locked'), 0);
      await asNobody(async () => {
        expect(await files.call('grep', { pattern: 'needle' })).toBe(`a/b.txt:1: needle\n${unread}`);
        await expect(files.call('grep', { pattern: 'x', path: 'locked' })).rejects.toThrow(
          'permission denied',
        );
      });
      await chmod(join(files.workspace, 'locked'), 0o755);
    });

    it('takes turns one by one, however many searches run', async () => {
      const turns = countTurns();
      const seen = await Promise.all(
        Array.from({ length: 5 }, async () => {
          const rest = createTimeSlice();
          holdLoop();
          await rest();
          return turns.now();
        }),
      );
      turns.end();
      expect(new Set(seen).size).toBe(5);
    });

    it('ends at once when aborted', async () => {
      await put('a.txt', 'x');
      await expect(files.call('grep', { pattern: 'x' }, AbortSignal.abort())).rejects.toThrow('aborted');
    });
  });
});

describe.runIf(process.platform === 'linux')('open files', () => {
  it('closes all files again, whatever goes wrong', async () => {
    await put('a/b/c.txt', 'x');
    await put('big.txt', 'x\n'.repeat(5000));
    await symlink('a', join(files.workspace, 'link'));
    const openFiles = async () => (await readdir('/proc/self/fd')).length;
    const round = async () => {
      const calls: readonly (readonly [string, object])[] = [
        ['read', { path: 'a/b/c.txt' }],
        ['read', { path: 'a/b' }],
        ['read', { path: 'link/b/c.txt' }],
        ['read', { path: 'a/b/c.txt/d' }],
        ['write', { path: 'a/b/c.txt/d', content: '' }],
        ['write', { path: 'link', content: '' }],
        ['write', { path: 'a/d.txt', content: 'x' }],
        ['edit', { path: 'a/d.txt', oldText: 'y', newText: '' }],
        ['list', { path: 'a/none' }],
        ['glob', { pattern: '**' }],
        ['grep', { pattern: 'x' }],
      ];
      for (const [name, args] of calls) {
        await files.call(name, args).catch(() => undefined);
        await files.call(name, args, AbortSignal.abort()).catch(() => undefined);
      }
    };
    await round();
    const before = await openFiles();
    for (let n = 0; n < 20; n++) await round();
    expect(await openFiles()).toBeLessThanOrEqual(before);
  });
});

describe('the files plugin', () => {
  it('lets members read and only owners write by default', async () => {
    const authorities = ({ tools }: AWorkspace) =>
      [...tools.values()].map(({ name, authority }) => `${name} ${authority}`);
    expect(authorities(files)).toEqual([
      'read member',
      'write owner',
      'edit owner',
      'list member',
      'glob member',
      'grep member',
    ]);
    const open = await aWorkspace({ readAuthority: 'guest', writeAuthority: 'member' });
    expect(authorities(open)).toContain('edit member');
    expect(authorities(open)).toContain('grep guest');
    await open.remove();
    const wrong = await aWorkspace({ writeAuthority: 'everyone' });
    expect(wrong.reports[0]?.kind).toBe('failed');
    await wrong.remove();
  });

  it('marks which tools may run in parallel and which may be repeated', () => {
    const kinds = [...files.tools.values()].map((tool) => `${tool.name} ${tool.parallelSafe} ${tool.replay}`);
    expect(kinds).toEqual([
      'read true safe',
      'write false safe',
      'edit false never',
      'list true safe',
      'glob true safe',
      'grep true safe',
    ]);
  });

  it('turns itself off on a system where it cannot confine itself to the workspace', async () => {
    const { log, lines } = recordingLog();
    const host = createPluginHost({ log, settle: nothingToSettle, hooks: noHooks });
    const [report] = await host.load([{ definition: createFilesPlugin('darwin'), config: {} }]);
    expect(report).toEqual({ kind: 'loaded', plugin: 'files', tools: [] });
    expect(lines.some((line) => line.startsWith('files.disabled') && line.includes('(darwin)'))).toBe(true);
  });

  it('runs no code planted in a workspace (threat 9)', async () => {
    const trap = `process.getBuiltinModule('node:fs').writeFileSync(${JSON.stringify(join(files.outside, 'ran'))}, 'x')`;
    const planted = [
      'index.js',
      'plugin.cjs',
      'plugins/evil/index.ts',
      'node_modules/re2js/index.js',
      'node_modules/zod/index.js',
      'hooks/start.js',
      'parley.plugin.js',
      ...['index.mjs', 'index.ts', 'preload.cjs', 'bin/parley.mjs', 'skills/evil/index.js'],
      ...['.parley/plugins/evil.js', '.hooks/start.js', 'channels/evil/index.ts', 'tools/evil.js'],
      'src/main.ts',
    ];
    // Together with the three files below, which would make other programs run them, that is 20.
    expect(planted).toHaveLength(17);
    for (const path of planted) await put(path, trap);
    await put(
      'package.json',
      JSON.stringify({ main: 'index.js', scripts: { postinstall: 'node index.js' } }),
    );
    await put('.npmrc', 'node-options=--require ./index.js');
    await put('.env', 'NODE_OPTIONS=--require ./index.js');
    for (const path of planted) await files.call('read', { path });
    await files.call('list', {});
    await files.call('glob', { pattern: '**' });
    await files.call('grep', { pattern: 'x' });
    await files.call('write', { path: 'index.js', content: trap });
    expect(await readdir(files.outside)).toEqual([]);
  });
});

/** Does the work without root's permission to read everything. */
async function asNobody(work: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return work();
  await chmod(files.folder, 0o755);
  process.seteuid?.(65_534);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
  }
}
