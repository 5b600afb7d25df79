/** What people have reported of other agents' shells, each tried here. */
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AShell, aRun, aShell } from './a-shell.ts';

let shell: AShell;
beforeAll(async () => {
  shell = await aShell();
});
afterAll(() => shell.remove());

const idIn = (text: string) => /as (\w{6})\./.exec(text)?.[1] ?? '';

describe('what other shells were reported for', () => {
  it('returns when the command ends, although something holds its output (opencode 47350)', async () => {
    expect(await shell.bash('sleep 600 & sleep 600 </dev/null >/dev/null & echo up')).toBe(
      'up\n(exit code 0)',
    );
  });

  it('returns from a command with setsid or nohup (anthropic-sdk-go 390)', async () => {
    const text = await shell.bash('setsid nohup sleep 600 & setsid -f sleep 600; echo OK');
    expect(text).toContain('OK\n(exit code 0)');
  });

  it('ends descendants that ignore SIGTERM under a command’s own timeout (pi 9460)', async () => {
    const script = `bash -c 'trap "" TERM; sleep 600 & sleep 600'`;
    expect(await shell.bash(`timeout 1 ${script} & sleep 0.1; exit 7`)).toBe('(no output)\n(exit code 7)');
    expect(await shell.bash(`timeout 600 ${script}`, { timeoutSeconds: 1 })).toContain('the time limit');
  });

  it('ends a background command whose children hold its output (openclaw 147304)', async () => {
    const id = idIn(
      await shell.call('bash', { command: 'nohup sleep 600 | cat & echo ready', background: true }),
    );
    await expect
      .poll(() => shell.call('bash_jobs', { action: 'read', id }))
      .toMatch(/ready\n\(exit code 0\)$/);
    expect(await shell.call('bash_jobs', { action: 'end', id })).toMatch(/\(exit code 0\)$/);
  });

  it('passes exclamation marks and quotes to the command unchanged (tend 639)', async () => {
    expect(await shell.bash(`echo "a!b" '!!' "it's"`)).toBe("a!b !! it's\n(exit code 0)");
  });

  it('reaches no socket of the machine, with a path or without (claux 20)', async () => {
    const folder = await mkdtemp('/tmp/parley-sock-');
    const name = `parley-test-${process.pid}`;
    const servers = [join(folder, 'docker.sock'), `\0${name}`].map((path) => listenOn(path));
    try {
      const perl = `use Socket; for my $p ("${folder}/docker.sock", "\\0${name}") { socket(my $s, PF_UNIX, SOCK_STREAM, 0); print connect($s, pack_sockaddr_un($p)) ? "open" : "closed"; }`;
      expect(await shell.bash(`perl -e '${perl}'`)).toBe('closedclosed\n(exit code 0)');
    } finally {
      for (const server of await Promise.all(servers)) server.close();
      await rm(folder, { recursive: true });
    }
  });

  it('runs in a repository whose .git/hooks is a link to a folder (sandbox-runtime 221)', async () => {
    const run = aRun(join(shell.folder, 'linked-hooks'));
    await mkdir(join(run.workspace, '.git'), { recursive: true });
    await mkdir(join(run.workspace, 'tracked-hooks'));
    await symlink('../tracked-hooks', join(run.workspace, '.git', 'hooks'));
    expect(await shell.bash('ls -d .git/hooks/', { run })).toBe('.git/hooks/\n(exit code 0)');
  });

  it('runs in a worktree, whose .git is a file (claude-code 17374)', async () => {
    const run = aRun(join(shell.folder, 'worktree'));
    await mkdir(run.workspace);
    await writeFile(join(run.workspace, '.git'), 'gitdir: /elsewhere\n');
    expect(await shell.bash('cat .git', { run })).toBe('gitdir: /elsewhere\n(exit code 0)');
  });

  it('lets nobody set programs that git would run on the host (dirge 774)', async () => {
    const run = aRun(join(shell.folder, 'repository'));
    await mkdir(run.workspace);
    await shell.bash('git init -q .', { run });
    const text = await shell.bash(
      'git config core.fsmonitor "touch /tmp/x"; echo ../evil > .git/commondir; echo "* filter=x" > .git/info/attributes',
      { run },
    );
    expect(text).toMatch(
      /could not lock config file[\s\S]*Read-only file system[\s\S]*Read-only file system/,
    );
    expect(await shell.bash('git status --short; git log 2>&1 | head -1', { run })).toContain(
      '(exit code 0)',
    );
  });

  it('leaves no files of its own in the workspace (pi-sandbox 52)', async () => {
    const run = aRun(join(shell.folder, 'empty'));
    await shell.bash('true', { run });
    expect(await readdir(run.workspace)).toEqual([]);
  });

  it('has no terminal into which it could type (bubblewrap’s --new-session)', async () => {
    expect(await shell.bash('echo x > /dev/tty; tty; ps -o tty= -p $$')).toMatch(
      /No such device or address[\s\S]*not a tty\n\?\n\(exit code 0\)$/,
    );
  });

  it('bounds an endless line, and bytes that are no text (mastra 24346)', async () => {
    const text = await shell.bash(`printf '\\xff\\x00\\x1b[31mred'; head -c 100000 /dev/zero | tr '\\0' x`);
    expect(text.startsWith('\ufffd\0\u001b[31mredx')).toBe(true);
    expect(text).toMatch(/x\n\[\d+ bytes left out here\]\nx+\n\(exit code 0\)$/);
  });
});

function listenOn(path: string): Promise<Server> {
  const server = createServer((socket) => socket.end());
  return new Promise((resolve) => server.listen(path, () => resolve(server)));
}
