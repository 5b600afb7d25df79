import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeCommand } from '../../../plugins/shell/command.ts';
import { shellConfigSchema } from '../../../plugins/shell/config.ts';
import { createShellPlugin } from '../../../plugins/shell/index.ts';
import { createPluginHost } from '../../../src/plugin-host/plugin-host.ts';
import { noHooks } from '../../support/no-hooks.ts';
import { nothingToSettle } from '../../support/nothing-to-settle.ts';
import { silentLog } from '../../support/silent-log.ts';
import { type AShell, aRun, aShell } from './a-shell.ts';

let shell: AShell;
beforeAll(async () => {
  shell = await aShell({ config: { environment: { GREETING: 'hello' } } });
});
afterAll(() => shell.remove());

describe('bash', () => {
  it('runs a command in the workspace and returns its output and exit code', async () => {
    expect(await shell.bash('pwd; echo kept > kept.txt')).toBe('/workspace\n(exit code 0)');
    expect(await readFile(join(shell.workspace, 'kept.txt'), 'utf8')).toBe('kept\n');
    expect(await shell.bash('echo oops >&2; exit 3')).toBe('oops\n(exit code 3)');
    expect(await shell.bash('true')).toBe('(no output)\n(exit code 0)');
  });

  it('creates a missing workspace', async () => {
    const run = aRun(join(shell.folder, 'new', 'workspace'));
    expect(await shell.bash('pwd', { run })).toBe('/workspace\n(exit code 0)');
  });

  it('passes the settings’ environment and nothing of its own', async () => {
    process.env.PARLEY_CANARY = 'canary';
    try {
      const names = (await shell.bash('env -0 | cut -z -d= -f1 | tr "\\0" "\\n" | sort')).split('\n');
      expect(names).toEqual(
        expect.arrayContaining(['GREETING', 'HOME', 'LANG', 'NO_COLOR', 'PATH', 'TERM', '(exit code 0)']),
      );
      expect(names).not.toContain('PARLEY_CANARY');
      expect(await shell.bash('cat /proc/*/environ | tr "\\0" "\\n"')).not.toContain('canary');
    } finally {
      delete process.env.PARLEY_CANARY;
    }
  });

  it('keeps the beginning and the end of a long output', async () => {
    const text = await shell.bash('echo first; seq 1000000; echo last');
    expect(text.startsWith('first\n1\n2\n')).toBe(true);
    expect(text.endsWith('1000000\nlast\n(exit code 0)')).toBe(true);
    expect(text).toMatch(/\n\[\d+ bytes left out here\]\n/);
    expect(Buffer.byteLength(text)).toBeLessThan(32 * 1024);
  });

  it('reports the output while the command is running', async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const controller = new AbortController();
    const call = shell.bash('echo so far; sleep 600', { update: resolve, signal: controller.signal });
    expect(await promise).toBe('so far\n');
    controller.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
  });

  it('lets a command end in order before it kills it', async () => {
    const command = 'trap "echo bye > bye.txt; exit 0" TERM; echo ready; read < <(exec sleep 600)';
    expect(await shell.bash(command, { timeoutSeconds: 1 })).toBe(
      'ready\n(ended after 1 s, the time limit, with everything that it had started)',
    );
    expect(await readFile(join(shell.workspace, 'bye.txt'), 'utf8')).toBe('bye\n');
  });

  it('runs a command unchanged, whatever characters it contains', async () => {
    for (const command of ['-x', '--help', `echo '"$HOME" \\!' # "`, "echo $'a\\nb'", 'echo ｅｃｈｏ“”'])
      expect(describeCommand(command, '/w', shellConfigSchema.parse({})).argv.at(-1)).toBe(command);
    expect(await shell.bash(`printf '%s|' '!' '"$HOME"' "\`echo in\`" $'a\\nb'`)).toBe(
      `!|"$HOME"|in|a\nb|\n(exit code 0)`,
    );
    expect(await shell.bash('-x')).toContain('-x: command not found');
  });

  it('shows the person who approves a call everything that it runs with, the command last', () => {
    expect(shell.describe({ command: 'echo a\necho b' })).toBe(
      [
        '/bin/bash -c --, in the sandbox, without network',
        `in /workspace (${shell.workspace}), for at most 60 s`,
        'PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" HOME="/tmp/home" LANG="C.UTF-8" TERM="dumb" NO_COLOR="1" GREETING="hello"',
        '',
        'echo a\necho b',
      ].join('\n'),
    );
    const shown = [
      { command: 'x' },
      { command: 'x ' },
      { command: 'x', background: true },
      { command: 'x', timeoutSeconds: 61 },
    ].map((input) => shell.describe(input));
    expect(new Set(shown).size).toBe(4);
  });

  it('refuses a command that the kernel would not take', async () => {
    for (const command of ['', 'a\0b', 'x'.repeat(40_000)])
      await expect(shell.call('bash', { command })).rejects.toThrow();
    expect(await shell.bash(`: ${'é'.repeat(31_000)}`)).toBe('(no output)\n(exit code 0)');
  });

  it('limits processes’ memory and the files that they write', async () => {
    const small = await aShell({ config: { memoryMb: 64, maxFileMb: 1 } });
    try {
      expect(
        await small.bash('head -c 5000000 /dev/zero > big; ls -s --block-size=1 big | cut -d" " -f1'),
      ).toContain('1048576');
      expect(await small.bash('x=$(head -c 200000000 /dev/zero | tr "\\0" x); wc -c <<< $x')).not.toContain(
        '200000000',
      );
      expect(await small.bash('cat /proc/self/oom_score_adj')).toContain('1000');
    } finally {
      await small.remove();
    }
  });
});

describe('the workspace in the sandbox', () => {
  it('has read-only folders where git and Parley keep what they run', async () => {
    await mkdir(join(shell.workspace, '.git', 'hooks'), { recursive: true });
    await writeFile(join(shell.workspace, '.git', 'config'), '[core]\n');
    for (const name of ['hooks', 'skills', 'plugins']) await mkdir(join(shell.workspace, name));
    const places = [
      '.git/config',
      '.git/commondir',
      '.git/hooks/pre-commit',
      'hooks/a',
      'skills/a',
      'plugins/a',
    ];
    for (const place of places)
      expect(await shell.bash(`echo x >> ${place}`)).toContain('Read-only file system');
    expect(await shell.bash('mv .git old || rm -rf hooks || rmdir skills')).toContain('(exit code 1)');
    expect(await readFile(join(shell.workspace, '.git', 'config'), 'utf8')).toBe('[core]\n');
  });

  it('keeps a worktree’s .git file as it is', async () => {
    const worktree = aRun(join(shell.folder, 'worktree'));
    await mkdir(worktree.workspace);
    await writeFile(join(worktree.workspace, '.git'), 'gitdir: /elsewhere\n');
    expect(await shell.bash('cat .git; echo x > .git; rm .git', { run: worktree })).toMatch(
      /gitdir: \/elsewhere\n[\s\S]*Read-only file system[\s\S]*\(exit code 1\)$/,
    );
  });

  it('follows no link that a command has left in place of a protected folder', async () => {
    const run = aRun(join(shell.folder, 'linked'));
    await mkdir(run.workspace);
    await writeFile(join(shell.outside, 'secret'), 'canary');
    await symlink(shell.outside, join(run.workspace, '.git'));
    await symlink('/etc', join(run.workspace, 'hooks'));
    const text = await shell.bash('ls -la; cat .git/secret; cat hooks/shadow', { run });
    expect(text).toContain('(exit code 1)');
    expect(text).not.toContain('canary');
  });
});

describe('background commands', () => {
  const idIn = (text: string) => /as (\w{6})\./.exec(text)?.[1] ?? '';
  const start = async (command: string, run = shell.run) =>
    idIn(await shell.call('bash', { command, background: true }, { run }));

  it('lists, reads and ends background commands', async () => {
    const id = await start('echo started; sleep 600');
    expect(await shell.call('bash_jobs', { action: 'list' })).toMatch(
      new RegExp(`^${id} {2}\\(running for \\d+ s\\) {2}echo started; sleep 600$`),
    );
    await expect.poll(() => shell.call('bash_jobs', { action: 'read', id })).toMatch(/^started\n\(running/);
    const ended = 'started\n(ended on request, with everything that it had started)';
    expect(await shell.call('bash_jobs', { action: 'end', id })).toBe(ended);
    expect(await shell.call('bash_jobs', { action: 'end', id })).toBe(ended);
    expect(await shell.call('bash_jobs', { action: 'read', id })).toBe(ended);
  });

  it('still reads a background command after its end', async () => {
    const id = await start('echo done; exit 4');
    await expect.poll(() => shell.call('bash_jobs', { action: 'read', id })).toBe('done\n(exit code 4)');
  });

  it('shows a background command only to its own conversation', async () => {
    const id = await start('sleep 600');
    const other = aRun(shell.workspace, '13');
    expect(await shell.call('bash_jobs', { action: 'list' }, { run: other })).toBe(
      '(no background commands)',
    );
    for (const action of ['read', 'end'])
      await expect(shell.call('bash_jobs', { action, id }, { run: other })).rejects.toThrow(
        `This conversation has no background command ${id}.`,
      );
    expect(await shell.call('bash_jobs', { action: 'list' })).toContain(`${id}  (running`);
    await shell.call('bash_jobs', { action: 'end', id });
  });

  it('limits the background commands of each workspace, also when they start at the same time', async () => {
    const starting = Array.from({ length: 6 }, () => start('sleep 600').catch(String));
    const ids = await Promise.all(starting);
    const refused = ids.filter((id) => id.includes('4 background commands are running'));
    expect(refused).toHaveLength(2);
    const elsewhere = aRun(join(shell.folder, 'elsewhere'));
    await shell.call(
      'bash_jobs',
      { action: 'end', id: await start('sleep 600', elsewhere) },
      { run: elsewhere },
    );
    for (const id of ids.filter((each) => !refused.includes(each)))
      await shell.call('bash_jobs', { action: 'end', id });
    await shell.call('bash_jobs', { action: 'end', id: await start('sleep 600') });
  });

  it('ends background commands when Parley stops', async () => {
    const other = await aShell();
    await other.call('bash', {
      command: `echo on > on; trap "" TERM; while :; do date > on; done`,
      background: true,
    });
    await expect.poll(() => readFile(join(other.workspace, 'on'), 'utf8').catch(() => '')).not.toBe('');
    await other.close();
    const last = await readFile(join(other.workspace, 'on'), 'utf8');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await readFile(join(other.workspace, 'on'), 'utf8')).toBe(last);
    await other.remove();
  });
});

describe('the shell tools', () => {
  it('offers no shell tool unless the owner enables them', async () => {
    const host = createPluginHost({ log: silentLog, settle: nothingToSettle, hooks: noHooks });
    await host.load([{ definition: createShellPlugin('linux'), config: {} }]);
    await host.checked();
    expect(host.toolsFor(shell.run)).toEqual([]);
    expect(host.reports()).toEqual([{ kind: 'loaded', plugin: 'shell', tools: [] }]);
  });

  it('turns the shell tools off without bubblewrap, and says what to install', async () => {
    const none = await aShell({ bwrap: 'no-such-program' });
    expect(none.tools).toEqual([]);
    expect(none.finding).toEqual({
      result: 'failed',
      detail: "bash is off: bubblewrap isn't installed",
      fix: 'install it: apt-get install bubblewrap',
    });
    await none.remove();
  });

  it('turns the shell tools off where bubblewrap may not make a sandbox', async () => {
    for (const [says, fix] of [
      ['bwrap: setting up uid map: Permission denied', /Ubuntu 24.04/],
      ['bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted', /Ubuntu 24.04/],
      ["bwrap: Can't mount proc on /newroot/proc: Operation not permitted", /Docker/],
      ['bwrap: Unknown option --ro-bind-fd', /0\.8 or newer/],
    ] as const) {
      const bwrap = join(shell.folder, 'bwrap');
      await writeFile(bwrap, `#!/bin/sh\necho "${says}" >&2\nexit 1\n`, { mode: 0o755 });
      const off = await aShell({ bwrap });
      expect(off.tools).toEqual([]);
      expect(off.finding).toMatchObject({ result: 'failed', detail: `bash is off: ${says}` });
      expect(off.finding?.fix).toMatch(fix);
      await off.remove();
    }
  });

  it('turns the shell tools off if a program named bubblewrap confines nothing', async () => {
    const bwrap = join(shell.folder, 'open');
    const script = `#!/bin/bash
echo '{ "child-pid": 0 }' >&3
while [ "$1" != --bind ]; do shift; done
cd "$2" && while [ "$1" != -- ]; do shift; done
shift && "$@"; code=$?
echo "{ \\"exit-code\\": $code }" >&3
exit $code
`;
    await writeFile(bwrap, script, { mode: 0o755 });
    const off = await aShell({ bwrap });
    expect(off.finding).toMatchObject({
      result: 'failed',
      detail: 'bash is off: the sandbox leaks: it writes to .git',
    });
    await off.remove();
  });

  it('turns the shell tools off on another system than Linux', async () => {
    const off = await aShell({ os: 'darwin' });
    expect(off.tools).toEqual([]);
    expect(off.finding?.detail).toBe('bash is off: its sandbox needs Linux, and this is darwin');
    await off.remove();
  });

  it('runs commands without a sandbox only if the owner says so, with a warning', async () => {
    const open = await aShell({ config: { unsandboxed: true }, bwrap: 'no-such-program' });
    expect(open.finding).toMatchObject({ result: 'warning', detail: expect.stringContaining('UNSANDBOXED') });
    expect(await open.bash('pwd')).toBe(`${open.workspace}\n(exit code 0)`);
    expect(await open.bash('sleep 600 & echo left')).toBe('left\n(exit code 0)');
    expect(await open.bash('trap "" TERM; sleep 600', { timeoutSeconds: 1 })).toContain('the time limit');
    await open.remove();
  });

  it('refuses environment variables that change how programs are loaded', () => {
    expect(shellConfigSchema.safeParse({ environment: { LD_PRELOAD: '/x' } }).success).toBe(false);
    expect(shellConfigSchema.safeParse({ environment: { 'A B': 'x' } }).success).toBe(false);
    expect(shellConfigSchema.safeParse({ environment: { A: 'x\0' } }).success).toBe(false);
  });
});
