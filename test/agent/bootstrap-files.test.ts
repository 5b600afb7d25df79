import { execFile } from 'node:child_process';
import { link, mkdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, it } from 'vitest';
import { createBootstrapFiles } from '../../src/agent/bootstrap-files.ts';
import type { DiskCalls } from '../../src/contracts/workspace-reader.ts';
import { aFolder } from '../support/own-folder.ts';

describe('bootstrap files', () => {
  let workspace = '';
  const at = (name: string) => join(workspace, name);

  beforeEach(async () => {
    workspace = aFolder();
  });

  it('reads the files that exist, in the order of the prompt', async () => {
    await writeFile(at('MEMORY.md'), 'memory');
    await writeFile(at('AGENTS.md'), ' rules \n');
    await writeFile(at('SOUL.md'), '\n');
    await writeFile(at('OTHER.md'), 'other');
    expect(await createBootstrapFiles({ workspace }).read()).toEqual([
      { name: 'AGENTS.md', text: 'rules' },
      { name: 'MEMORY.md', text: 'memory' },
    ]);
  });

  it("reads nothing from a workspace that doesn't exist", async () => {
    expect(await createBootstrapFiles({ workspace: at('nowhere') }).read()).toEqual([]);
  });

  it('reads a file again when it has changed, and only then', async () => {
    const files = createBootstrapFiles({ workspace });
    await writeFile(at('SOUL.md'), 'one');
    await utimes(at('SOUL.md'), 1, 1);
    const [first] = await files.read();
    const [again] = await files.read();
    await writeFile(at('SOUL.md'), 'two');
    const [changed] = await files.read();
    await rm(at('SOUL.md'));
    expect([first?.text, again?.text, changed?.text]).toEqual(['one', 'one', 'two']);
    expect(await files.read()).toEqual([]);
  });

  it.runIf(process.platform === 'linux')(
    'reads from the disk within a turn only if the disk may be remote',
    async () => {
      let calls = 0;
      const disks: DiskCalls = {
        run: (_, call) => {
          calls += 1;
          return call();
        },
        finish: (_, call) => call(),
      };
      const callsOf = async (folder: string) => {
        const files = createBootstrapFiles({ workspace: folder, disks });
        await files.read();
        calls = 0;
        await files.read();
        return calls;
      };
      expect(await callsOf(workspace)).toBe(0);
      expect(await callsOf(at('nowhere'))).toBe(0);
      // Not on a disk, so nothing guarantees that its calls return.
      expect(await callsOf('/proc/self')).toBeGreaterThan(0);
    },
  );

  it('cuts a long file with a note, between characters', async () => {
    await writeFile(at('AGENTS.md'), `x${'😀'.repeat(50_000)}`);
    const [file] = await createBootstrapFiles({ workspace }).read();
    expect(file?.text.length).toBeLessThanOrEqual(20_000);
    expect(file?.text.length).toBeGreaterThan(19_900);
    expect(file?.text).toMatch(/\[cut here: only the first 20000 characters are shown\]$/);
    expect(file?.text).not.toContain('\ufffd');
    expect(file?.text.isWellFormed()).toBe(true);
  });

  it("follows no symbolic or hard link, and isn't blocked by a folder or pipe", async () => {
    await writeFile(at('secret'), 'secret');
    await symlink(at('secret'), at('AGENTS.md'));
    await link(at('secret'), at('MEMORY.md'));
    await mkdir(at('SOUL.md'));
    await promisify(execFile)('mkfifo', [at('TOOLS.md')]);
    expect(await createBootstrapFiles({ workspace }).read()).toEqual([]);
  });
});
